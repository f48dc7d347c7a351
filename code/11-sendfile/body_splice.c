/*
 * splice(2): what sendfile() is made of, in two steps, file to pipe and pipe to socket. A pipe
 * holds references to pages and not their bytes, so nothing is copied here either. What the
 * socket does not take stays in the pipe, so each reply in flight owns one. Linux only.
 */
#include "11-sendfile/send_path.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "die.h"

#ifdef __linux__
#include <sys/sendfile.h>

struct channel {
    int out, in; /* as pipe() has them */
    size_t full; /* bytes in it */
};

/* A pipe for the next reply: most replies are sent in one turn and give theirs back. */
static struct channel *spare;

static struct channel *splice_new_pipe(void)
{
    struct channel *c = malloc(sizeof *c);
    int ends[2];

    if (c == NULL)
        return NULL;
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0) {
        free(c);
        return NULL;
    }
    *c = (struct channel){ends[0], ends[1], 0};
    return c;
}

static void splice_prepare(void)
{
    spare = splice_new_pipe();
    if (spare == NULL)
        die_errno("pipe");
}

static void splice_take_pipe(struct exchange *x)
{
    x->held = spare != NULL ? spare : splice_new_pipe();
    spare = NULL;
}

static void splice_end(struct exchange *x)
{
    struct channel *c = x->held;

    if (c != NULL && c->full == 0 && spare == NULL) {
        spare = c;
    } else if (c != NULL) {
        close(c->out);
        close(c->in);
        free(c);
    }
}

static ssize_t splice_send_body(int fd, struct exchange *x, size_t most)
{
    struct reply *r = &x->reply;

    if (x->held == NULL)
        splice_take_pipe(x);
    struct channel *c = x->held;
    loff_t offset = exchange_offset(x);
    if (c == NULL) /* no descriptors are left for a pipe: sendfile() needs none; the head is out */
        return sendfile(fd, r->fd, &offset, most);
    if (c->full == 0) {
        ssize_t n = splice(r->fd, &offset, c->in, NULL, most, SPLICE_F_NONBLOCK);
        if (n <= 0)
            return n;
        c->full = (size_t)n;
    }
    unsigned more = exchange_offset(x) + (off_t)c->full < r->end ? SPLICE_F_MORE : 0;
    ssize_t n = splice(c->out, NULL, fd, NULL, c->full, SPLICE_F_NONBLOCK | more);
    if (n > 0)
        c->full -= (size_t)n;
    return n;
}

const struct body body_splice = {
    .name = "splice", .send = splice_send_body, .end = splice_end, .prepare = splice_prepare};
#else
const struct body body_splice = {.name = "splice"};
#endif
