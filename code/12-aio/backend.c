#include "12-aio/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "05b-nonblocking/conn.h"
#include "11-sendfile/send_path.h"
#include "die.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Nothing is done about the disk: the file is mapped, and send() waits for the pages that are not
 * there, and everybody with it. */
static ssize_t send_mapped(int fd, struct exchange *x, size_t most)
{
    return body_mmap.send(fd, x, most);
}

static void end_mapped(struct exchange *x)
{
    body_mmap.end(x);
}

static const struct backend backend_writev = {
    .name = "writev", .send = send_mapped, .end = end_mapped};

/* As 11-sendfile: sendfile() waits for the disk, O_NONBLOCK or not, and everybody with it. */
static ssize_t send_file(int fd, struct exchange *x, size_t most)
{
    off_t offset = exchange_offset(x);

    return sendfile(fd, x->reply.fd, &offset, most);
}

static const struct backend backend_sendfile = {.name = "sendfile", .send = send_file};

static const struct backend *const backends[] = {
    &backend_threads,          &backend_writev, &backend_sendfile, &backend_posix,
    &backend_threads_sendfile, &backend_linux,  &backend_readahead};

static const struct backend *backend;
static bool no_atime;

void backend_choose(const char *name, int readers, bool noatime)
{
    no_atime = noatime;
    for (size_t i = 0; i < COUNT(backends); i++)
        if (name == NULL || strcmp(name, backends[i]->name) == 0) {
            backend = backends[i];
            break;
        }
    if (backend == NULL)
        die(EXIT_USAGE, "-d %s: there is no such backend; -h lists them", name);
    if (backend->start != NULL)
        backend->start(readers);
}

void backend_opened(int fd)
{
    int flags = no_atime ? fcntl(fd, F_GETFL) : -1;

    if (flags >= 0)
        fcntl(fd, F_SETFL, flags | O_NOATIME); /* EPERM: another user's file; then it is noted */
}

/* Nothing of the reply is out yet: the client can still be told. */
static void become_an_error(struct exchange *x, int error)
{
    backend_end(x);
    x->held = NULL;
    reply_errno(&x->reply, NULL, error);
    if (x->conn->options->verbose)
        reply_log(&x->reply, &(struct request){0}); /* what was asked for is in the line before */
}

enum sent backend_send(int fd, struct exchange *x, long *budget)
{
    struct reply *r = &x->reply;

    while (exchange_head_left(x) > 0 || (r->fd >= 0 && exchange_offset(x) < r->end)) {
        if (*budget <= 0)
            return SENT_BUDGET;
        size_t head = exchange_head_left(x);
        enum fetched fetched = r->fd >= 0 && backend->fetch != NULL ? backend->fetch(x) : FETCHED;
        if (fetched == FETCHING)
            return SENT_WAITS;
        if (fetched == FETCH_BLOCKED)
            return SENT_BLOCKED;
        if (fetched == FETCH_FAILED && x->sent == 0) {
            become_an_error(x, errno);
            continue;
        }
        if (fetched == FETCH_FAILED)
            return SENT_FAILED;
        off_t left = r->end - exchange_offset(x);
        if (head == 0 && left == 0) /* a thread has sent the last of it */
            break;
        ssize_t n = head > 0
                        ? send(fd, r->head + x->sent, head, r->fd >= 0 ? MSG_MORE : 0)
                        : backend->send(fd, x, left < *budget ? (size_t)left : (size_t)*budget);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? SENT_BLOCKED : SENT_FAILED;
        if (n == 0) /* the promised length cannot be kept: only the connection's end says so */
            return SENT_FAILED;
        x->sent += n;
        *budget -= n;
    }
    return SENT_ALL;
}

enum fetched backend_give_up(struct exchange *x, void (*drop)(struct job *))
{
    job_give_up(x->held, drop);
    x->held = NULL;
    x->reply.fd = -1;
    errno = EAGAIN; /* 503 */
    return FETCH_FAILED;
}

void backend_end(struct exchange *x)
{
    if (backend->end != NULL)
        backend->end(x);
    if (x->reply.fd >= 0)
        close(x->reply.fd);
}
