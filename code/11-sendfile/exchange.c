#include "11-sendfile/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_parse.h"
#include "stop.h"

/* What one may do before it is another's turn. */
#define TURN_REQUESTS 16

bool exchange_waits_for_requests;

/* An exchange has more than a kilobyte, and is needed for every reply: one is kept for the next. */
#define SPARE_ROOM 512
static struct exchange *spare;

/* The request that is being read, of whichever connection is being handled. */
static struct {
    size_t have;
    bool is_all; /* the socket has no more, before the next event */
    char bytes[HTTP_HEAD_MAX];
} in;

static void free_input(struct conn *c)
{
    if (c->exchange == NULL) /* else it is part of that */
        free(c->in);
}

/* From the connection to the common buffer, and back. */
static void take_input(struct conn *c)
{
    in.have = c->have;
    in.is_all = false;
    if (c->in != NULL)
        memcpy(in.bytes, c->in, c->have);
    free_input(c);
    c->in = NULL;
    c->have = 0;
}

static int keep_input(struct conn *c)
{
    if (in.have == 0)
        return 0;
    c->in = c->exchange != NULL ? c->exchange->rest : malloc(in.have);
    if (c->in == NULL)
        return -1;
    memcpy(c->in, in.bytes, in.have);
    c->have = in.have & 0x3fff; /* 14 bits, as the field: HTTP_HEAD_MAX fits */
    return 0;
}

static struct exchange *new_exchange(struct conn *c)
{
    size_t room = in.have > SPARE_ROOM ? in.have : SPARE_ROOM;
    struct exchange *x = spare;

    if (x != NULL && x->room >= in.have)
        spare = NULL;
    else if ((x = malloc(sizeof *x + room)) != NULL)
        x->room = room;
    else
        return NULL;
    x->head_sent = 0;
    x->has_body = x->found = x->waits = false;
    x->conn = c;
    x->held = NULL;
    x->reply.fd = -1;
    return x;
}

static bool find(struct exchange *x, const struct request *req, const struct exchange_ops *ops)
{
    int docroot_fd = x->conn->options->docroot_fd;

    if (ops->find != NULL)
        return ops->find(x, req, docroot_fd);
    reply_plan(&x->reply, req, docroot_fd);
    return true;
}

/* `used` is what http_parse() returned, not 0. */
static enum want begin_reply(struct conn *c, struct request *req, int used,
                             const struct exchange_ops *ops)
{
    struct exchange *x = c->exchange;

    if (x == NULL && (x = c->exchange = new_exchange(c)) == NULL)
        return WANT_CLOSE;
    conn_begin_to_send(c);
    req->keep_alive = req->keep_alive && !stopping;
    x->has_body = used > 0 && req->has_body;
    x->waits = false;
    if (used < 0) {
        reply_error(&x->reply, req, -used);
    } else if (!find(x, req, ops)) {
        x->waits = true;
        return WANT_READ;
    }
    x->found = true;
    x->begin = x->reply.offset;
    if (c->options->verbose)
        reply_log(&x->reply, req);
    if (used > 0) { /* what follows is the next request, if the client sends several at once */
        in.have -= (size_t)used;
        memmove(in.bytes, in.bytes + used, in.have);
    }
    conn_begin_step(c);
    return WANT_AGAIN;
}

static bool waits_for_requests(void)
{
    return !stopping || exchange_waits_for_requests;
}

/* WANT_AGAIN here means that the reply is there to be sent. */
static enum want read_request(struct conn *c, const struct exchange_ops *ops,
                              bool short_count_is_all)
{
    struct request req;
    int used;

    while ((used = http_parse(in.bytes, in.have, &req)) == 0) {
        size_t room = sizeof in.bytes - in.have;
        if (in.is_all)
            return WANT_READ;
        ssize_t n = recv(c->fd, in.bytes + in.have, room, 0);
        if (n < 0 && errno == EAGAIN)
            return waits_for_requests() ? WANT_READ : conn_finish(c, false, false);
        if (n == 0 || (n < 0 && errno != EINTR))
            return WANT_CLOSE;
        in.have += n > 0 ? (size_t)n : 0;
        in.is_all = short_count_is_all && waits_for_requests() && n > 0 && (size_t)n < room;
    }
    return begin_reply(c, &req, used, ops);
}

static void end_reply(struct conn *c, const struct exchange_ops *ops)
{
    if (c->exchange == NULL)
        return;
    ops->end(c->exchange);
    if (spare == NULL)
        spare = c->exchange;
    else
        free(c->exchange);
    c->exchange = NULL;
}

static enum want after_reply(struct conn *c, const struct exchange_ops *ops)
{
    const struct exchange *x = c->exchange;
    bool last = !x->reply.keep_alive, may_close = x->reply.may_close;
    bool unread = in.have > 0 || x->has_body;

    end_reply(c, ops);
    c->state = READING;
    conn_begin_step(c);
    return last ? conn_finish(c, unread, may_close) : WANT_AGAIN;
}

static off_t position(const struct exchange *x)
{
    return (off_t)x->head_sent + x->reply.offset - x->begin;
}

/* WANT_AGAIN: all is sent, or as much as was allowed. */
static enum want send_reply(struct conn *c, const struct exchange_ops *ops, long *budget)
{
    struct exchange *x = c->exchange;
    off_t before = position(x);
    enum sent sent = ops->send(c->fd, x, budget);
    off_t after = position(x);

    conn_count_sent(c, before, after);
    if (before / STEP_BYTES != after / STEP_BYTES)
        conn_begin_step(c);
    x->waits = sent == SENT_WAITS;
    switch (sent) {
    case SENT_ALL:
        return after_reply(c, ops);
    case SENT_BUDGET:
        return WANT_AGAIN;
    case SENT_BLOCKED:
        return WANT_WRITE;
    case SENT_WAITS:
        return WANT_READ;
    case SENT_FAILED:
        break;
    }
    return WANT_CLOSE;
}

static enum want go_on(struct conn *c, const struct exchange_ops *ops, long budget,
                       bool short_count_is_all)
{
    enum want want;

    for (int i = 0; i < TURN_REQUESTS && budget > 0 && c->state != LINGERING; i++) {
        if (c->state == READING || !c->exchange->found)
            if ((want = read_request(c, ops, short_count_is_all)) != WANT_AGAIN)
                return want;
        if (c->state == SENDING && (want = send_reply(c, ops, &budget)) != WANT_AGAIN)
            return want;
    }
    return WANT_AGAIN;
}

bool exchange_waits(const struct conn *c)
{
    return c->exchange != NULL && c->exchange->waits;
}

enum want exchange_handle(struct conn *c, const struct exchange_ops *ops, long turn_bytes,
                          bool short_count_is_all)
{
    if (c->state == LINGERING)
        return linger_read(&c->linger, c->fd);
    if (exchange_waits(c)) /* the time that the disk took is not the client's */
        conn_begin_step(c);
    take_input(c);
    enum want want = go_on(c, ops, turn_bytes, short_count_is_all);
    if (want != WANT_CLOSE && c->state != LINGERING && keep_input(c) < 0)
        return WANT_CLOSE;
    return want;
}

enum want exchange_timed_out(struct conn *c)
{
    return exchange_waits(c) ? WANT_AGAIN : conn_timed_out(c);
}

void exchange_end(struct conn *c, const struct exchange_ops *ops)
{
    free_input(c);
    end_reply(c, ops);
    close(c->fd);
}
