#include "12-aio/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "05b-nonblocking/conn.h"
#include "11-sendfile/send_path.h"
#include "die.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct backend *const backends[] = {
    &backend_threads, &backend_writev,           &backend_sendfile, &backend_posix,
    &backend_nowait,  &backend_threads_sendfile, &backend_linux,    &backend_readahead};

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
static void become_an_error(struct sending *s)
{
    backend->end(s);
    s->held = NULL;
    close(s->reply.fd);
    reply_error(&s->reply, NULL, 500);
    if (s->conn->options->verbose)
        reply_log(&s->reply, &(struct request){0}); /* what was asked for is in the line before */
}

enum sent send_reply(int fd, struct sending *s, long *budget)
{
    struct reply *r = &s->reply;

    while (s->head_sent < r->head_len || (r->fd >= 0 && r->offset < r->end)) {
        if (*budget <= 0)
            return SENT_BUDGET;
        size_t head = r->head_len - s->head_sent;
        enum fetched fetched = r->fd >= 0 && backend->fetch != NULL ? backend->fetch(s) : FETCHED;
        if (fetched == FETCHING)
            return SENT_DISK;
        if (fetched == FETCH_BLOCKED)
            return SENT_BLOCKED;
        if (fetched == FETCH_FAILED && s->head_sent == 0) {
            become_an_error(s);
            continue;
        }
        if (fetched == FETCH_FAILED)
            return SENT_FAILED;
        off_t left = r->end - r->offset;
        if (head == 0 && left == 0) /* a thread has sent the last of it */
            break;
        ssize_t n = head > 0
                        ? join_more.send_head(fd, s, NULL)
                        : backend->send(fd, s, left < *budget ? (size_t)left : (size_t)*budget);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? SENT_BLOCKED : SENT_FAILED;
        if (n == 0) /* the promised length cannot be kept: only the connection's end says so */
            return SENT_FAILED;
        if (head > 0)
            s->head_sent += (size_t)n;
        else
            r->offset += n;
        *budget -= n;
    }
    return SENT_ALL;
}

void send_end(struct sending *s)
{
    if (backend->end != NULL)
        backend->end(s);
    if (s->reply.fd >= 0)
        close(s->reply.fd);
}
