/*
 * conn.c: a connection as a state machine. A blocking server keeps the state of a connection where
 * it sleeps: in the stack and the program counter of its process or thread. Here nobody sleeps, so
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
#include "reply.h"
#include "stop.h"

/* What one may do before it is another's turn. */
#define TURN_REQUESTS 16
#define TURN_BYTES    (256 * 1024)

#define CHUNK 65536

struct exchange {
    struct reply reply;
    off_t sent;    /* bytes, head and body */
    bool has_body; /* the request may be followed by bytes that nobody will read */
};

/* The request that is being read, of whichever connection is being handled. */
static struct {
    size_t have;
    char bytes[HTTP_HEAD_MAX];
} in;

/* From the connection to the common buffer, and back. */
static void take_input(struct conn *c)
{
    in.have = c->have;
    if (c->in != NULL)
        memcpy(in.bytes, c->in, c->have);
    free(c->in);
    c->in = NULL;
    c->have = 0;
}

static int keep_input(struct conn *c)
{
    if (in.have == 0)
        return 0;
    c->in = malloc(in.have);
    if (c->in == NULL)
        return -1;
    memcpy(c->in, in.bytes, in.have);
    c->have = in.have & 0x3fff; /* 14 bits, as the field: HTTP_HEAD_MAX fits */
    return 0;
}

/* `used` is what http_parse() returned, not 0. */
static enum want begin_reply(struct conn *c, struct request *req, int used)
{
    struct exchange *x = calloc(1, sizeof *x);

    if (x == NULL)
        return WANT_CLOSE;
    x->has_body = used > 0 && req->has_body;
    req->keep_alive = req->keep_alive && !stopping;
    if (used < 0)
        reply_error(&x->reply, req, -used);
    else
        reply_plan(&x->reply, req, c->options->docroot_fd);
    if (c->options->verbose)
        reply_log(&x->reply, req);
    if (used > 0) { /* what follows is the next request, if the client sends several at once */
        in.have -= (size_t)used;
        memmove(in.bytes, in.bytes + used, in.have);
    }
    c->exchange = x;
    conn_begin_to_send(c);
    return WANT_AGAIN;
}

/* WANT_AGAIN here means that the reply is there to be sent. */
static enum want read_request(struct conn *c)
{
    struct request req;
    int used;

    while ((used = http_parse(in.bytes, in.have, &req)) == 0) {
        ssize_t n = recv(c->fd, in.bytes + in.have, sizeof in.bytes - in.have, 0);
        if (n < 0 && errno == EAGAIN)
            return stopping ? conn_finish(c, false, false) : WANT_READ;
        if (n == 0 || (n < 0 && errno != EINTR))
            return WANT_CLOSE;
        in.have += n > 0 ? (size_t)n : 0;
    }
    return begin_reply(c, &req, used);
}

static void end_reply(struct conn *c)
{
    if (c->exchange == NULL)
        return;
    if (c->exchange->reply.fd >= 0)
        close(c->exchange->reply.fd);
    free(c->exchange);
    c->exchange = NULL;
}

static enum want after_reply(struct conn *c)
{
    const struct exchange *x = c->exchange;
    bool last = !x->reply.keep_alive, may_close = x->reply.may_close;
    bool unread = in.have > 0 || x->has_body;

    end_reply(c);
    c->state = READING;
    conn_begin_step(c);
    return last ? conn_finish(c, unread, may_close) : WANT_AGAIN;
}

/*
 * What the socket does not take is read from the file once more, out of the page cache, when it
 * does: so the buffer belongs to no connection. WANT_AGAIN: all is sent, or as much as was allowed.
 */
static enum want send_reply(struct conn *c, long *budget)
{
    static char chunk[CHUNK];
    struct exchange *x = c->exchange;

    while (*budget > 0) {
        ssize_t len = reply_next(&x->reply, x->sent, chunk, sizeof chunk);
        if (len <= 0)
            return len == 0 ? after_reply(c) : WANT_CLOSE;
        ssize_t n = send(c->fd, chunk, (size_t)len, x->reply.may_close ? FIN_FOLLOWS : 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? WANT_WRITE : WANT_CLOSE;
        conn_count_sent(c, x->sent, x->sent + n);
        if (x->sent / STEP_BYTES != (x->sent + n) / STEP_BYTES)
            conn_begin_step(c);
        x->sent += n;
        *budget -= n;
    }
    return WANT_AGAIN;
}

static enum want go_on(struct conn *c)
{
    enum want want;
    long budget = TURN_BYTES;

    for (int i = 0; i < TURN_REQUESTS && budget > 0 && c->state != LINGERING; i++) {
        if (c->state == READING && (want = read_request(c)) != WANT_AGAIN)
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
    take_input(c);
    enum want want = go_on(c);
    if (want != WANT_CLOSE && c->state != LINGERING && keep_input(c) < 0)
        return WANT_CLOSE;
    return want;
}

void conn_end(struct conn *c)
{
    free(c->in);
    end_reply(c);
    close(c->fd);
}
