#include "12-aio/backend.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "12-aio/appendix/appendix.h"
#include "die.h"

static const struct backend *const backends[] = {&backend_threads, &backend_posix, &backend_linux};
static struct body_source source = {piece_fetch, piece_send, piece_end, piece_blocked};

void backend_choose(const char *name, int readers)
{
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (name == NULL || strcmp(name, backends[i]->name) == 0) {
            piece_start(backends[i], readers);
            return;
        }
    if (!appendix_choose(name, readers, &source))
        die(EXIT_USAGE, "-d %s: there is no such backend; -h lists them", name);
}

enum sent backend_send(int fd, struct exchange *x, long *budget)
{
    struct reply *r = &x->reply;

    while (exchange_head_left(x) > 0 || (r->fd >= 0 && exchange_offset(x) < r->end)) {
        if (*budget <= 0)
            return SENT_BUDGET;
        /* Before the head, too: if this fails, an error can be sent in its place. */
        enum fetched fetched = r->fd >= 0 ? source.fetch(x) : FETCHED;
        if (fetched == FETCHING)
            return SENT_WAITS;
        if (fetched == FETCH_FAILED && !job_reply_error(x, errno))
            return SENT_FAILED;
        if (fetched == FETCH_FAILED)
            continue;
        size_t head = exchange_head_left(x);
        off_t left = r->end - exchange_offset(x);
        ssize_t n = head > 0 ? send(fd, r->head + x->sent, head, r->fd >= 0 ? MSG_MORE : 0)
                             : source.send(fd, x, left < *budget ? (size_t)left : (size_t)*budget);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN && r->fd >= 0 && source.blocked != NULL)
            source.blocked(x);
        if (n < 0)
            return errno == EAGAIN ? SENT_BLOCKED : SENT_FAILED;
        if (n == 0) /* the file is shorter than promised: only the end of the connection says so */
            return SENT_FAILED;
        x->sent += n;
        *budget -= n;
    }
    return SENT_ALL;
}

void backend_end(struct exchange *x)
{
    source.end(x);
    if (x->reply.fd >= 0)
        close(x->reply.fd);
}
