/*
 * conn.c: a connection as a state machine. A blocking server keeps the state of a connection where
 * it sleeps: in the stack and the program counter of its process or thread. Here nothing sleeps, so
 * what was in local variables is in struct conn, and "where was I" is its `state`. An idle
 * connection owns no buffer: most connections are idle most of the time.
 */
#include "05b-nonblocking/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_parse.h"
#include "stop.h"

/* What one connection may do before others have their turn. */
#define TURN_REQUESTS 16
#define TURN_BYTES    (256 * 1024)

#define CHUNK     65536
#define REST_ROOM 512

bool conn_serves_while_stopping;

/* The input of the connection that is being handled: one buffer for all. */
static struct {
    size_t have;
    bool is_drained; /* the last recv() emptied the socket: do not call it again in this turn */
    char bytes[HTTP_HEAD_MAX];
} in;

/* An exchange is more than a kilobyte, and every reply needs one: one is kept for the next. */
static struct exchange *spare_exchange;

static void free_input(struct conn *c)
{
    if (c->exchange == NULL) /* else c->in is part of the exchange */
        free(c->in);
    c->in = NULL;
}

/* Moves what has come of the next request from the connection to `in`. */
static void take_input(struct conn *c)
{
    in.have = c->have;
    in.is_drained = false;
    if (c->in != NULL)
        memcpy(in.bytes, c->in, c->have);
    free_input(c);
    c->have = 0;
}

/* ... and back. Returns -1 without memory. */
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

/* Returns NULL without memory. The exchange has room for all input, so keep_input() cannot fail
 * while a job runs for the connection. */
static struct exchange *new_exchange(struct conn *c)
{
    size_t room = in.have > REST_ROOM ? in.have : REST_ROOM;
    struct exchange *x = spare_exchange;

    if (x != NULL && x->room >= in.have)
        spare_exchange = NULL;
    else if ((x = malloc(sizeof *x + room)) != NULL)
        x->room = room;
    else
        return NULL;
    x->sent = 0;
    x->has_body = x->found = x->waits = false;
    x->conn = c;
    x->held = NULL;
    x->reply.fd = -1;
    return x;
}

static void end_exchange(struct conn *c)
{
    struct exchange *x = c->exchange;

    if (x == NULL)
        return;
    if (c->ops != NULL)
        c->ops->end(x);
    else if (x->reply.fd >= 0)
        close(x->reply.fd);
    if (spare_exchange == NULL)
        spare_exchange = x;
    else
        free(x);
    c->exchange = NULL;
}

/* Returns false if the reply has to be waited for. */
static bool find_reply(struct exchange *x, const struct request *req, const struct conn_ops *ops)
{
    int docroot_fd = x->conn->options->docroot_fd;

    if (ops != NULL && ops->find != NULL)
        return ops->find(x, req, docroot_fd);
    reply_plan(&x->reply, req, docroot_fd);
    return true;
}

/* `used` is what http_parse() returned: the length of the request, or minus a status; not 0. */
static enum want begin_reply(struct conn *c, struct request *req, int used)
{
    if (c->exchange == NULL && (c->exchange = new_exchange(c)) == NULL)
        return WANT_CLOSE;
    struct exchange *x = c->exchange;
    c->state = SENDING;
    c->has_read = false;
    req->keep_alive = req->keep_alive && !stopping;
    req->is_last = req->is_last && !c->replied;
    x->has_body = used > 0 && req->has_body;
    if (used < 0)
        reply_error(&x->reply, req, -used);
    else
        x->waits = !find_reply(x, req, c->ops);
    conn_begin_step(c); /* restarts the deadline: the time of the look-up is not the client's */
    if (x->waits)
        return WANT_READ;
    x->found = true;
    if (c->options->verbose)
        reply_log(&x->reply, req);
    if (used > 0) { /* what follows is the next request: the client may pipeline */
        in.have -= (size_t)used;
        memmove(in.bytes, in.bytes + used, in.have);
    }
    return WANT_AGAIN;
}

/* WANT_AGAIN: go_on() can send the reply. */
static enum want read_request(struct conn *c)
{
    bool ends = stopping && !conn_serves_while_stopping;
    struct request req;
    int used;

    while ((used = http_parse(in.bytes, in.have, &req)) == 0) {
        size_t room = sizeof in.bytes - in.have;
        if (in.is_drained)
            return WANT_READ;
        ssize_t n = recv(c->fd, in.bytes + in.have, room, 0);
        if (n < 0 && errno == EAGAIN)
            return ends ? conn_finish(c, false, false) : WANT_READ;
        if (n == 0 || (n < 0 && errno != EINTR))
            return WANT_CLOSE;
        in.have += n > 0 ? (size_t)n : 0;
        in.is_drained =
            c->ops != NULL && c->ops->short_count_is_all && !ends && n > 0 && (size_t)n < room;
    }
    return begin_reply(c, &req, used);
}

/*
 * Sends by copying: the send() of connections without operations. What the socket does not take is
 * read from the file again later, so one buffer does for all connections.
 */
static enum sent send_copy(int fd, struct exchange *x, long *budget)
{
    static char chunk[CHUNK];

    while (*budget > 0) {
        ssize_t len = reply_next(&x->reply, x->sent, chunk, sizeof chunk);
        if (len <= 0)
            return len == 0 ? SENT_ALL : SENT_FAILED;
        ssize_t n = send(fd, chunk, (size_t)len, x->reply.may_close ? FIN_FOLLOWS : 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? SENT_BLOCKED : SENT_FAILED;
        x->sent += n;
        *budget -= n;
    }
    return SENT_BUDGET;
}

static enum want after_reply(struct conn *c)
{
    const struct exchange *x = c->exchange;
    bool last = !x->reply.keep_alive, may_close = x->reply.may_close;
    bool unread = in.have > 0 || x->has_body;

    end_exchange(c);
    c->state = READING;
    c->replied = true;
    conn_begin_step(c);
    return last ? conn_finish(c, unread, may_close) : WANT_AGAIN;
}

/* WANT_AGAIN: go_on() continues. The reply is sent and the connection kept, or it has begun to
 * linger, or the budget is used up. */
static enum want send_reply(struct conn *c, long *budget)
{
    struct exchange *x = c->exchange;
    off_t before = x->sent;
    enum sent sent = (c->ops != NULL ? c->ops->send : send_copy)(c->fd, x, budget);

    unsent_count(c->fd, before, x->sent);
    c->has_read = x->sent >= UNSENT_PROOF;
    if (before / STEP_BYTES != x->sent / STEP_BYTES)
        conn_begin_step(c);
    x->waits = sent == SENT_WAITS;
    switch (sent) {
    case SENT_ALL:
        return after_reply(c);
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

static enum want go_on(struct conn *c)
{
    long budget = c->ops != NULL && c->ops->turn_bytes > 0 ? c->ops->turn_bytes : TURN_BYTES;
    enum want want;

    for (int i = 0; i < TURN_REQUESTS && budget > 0 && c->state != LINGERING; i++) {
        /* A request whose file is still being looked up is parsed again, and find() called. */
        if (c->state == READING || !c->exchange->found)
            if ((want = read_request(c)) != WANT_AGAIN)
                return want;
        if (c->state == SENDING && (want = send_reply(c, &budget)) != WANT_AGAIN)
            return want;
    }
    return WANT_AGAIN;
}

enum want conn_handle(struct conn *c)
{
    if (c->state == LINGERING)
        return linger_read(&c->linger, c->fd);
    /* Restarts the deadline: the time of the disk is not the client's. */
    if (conn_waits_for_disk(c))
        conn_begin_step(c);
    take_input(c);
    enum want want = go_on(c);
    if (want != WANT_CLOSE && c->state != LINGERING && keep_input(c) < 0)
        return WANT_CLOSE;
    return want;
}

void conn_end(struct conn *c)
{
    free_input(c);
    end_exchange(c);
    close(c->fd);
}
