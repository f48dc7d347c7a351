/*
 * serve.c: what 05b-nonblocking does in turns, written straight again. read_request() seems to
 * block, and no struct says how far the connection has come. The socket itself does not block:
 * where it gives EAGAIN, await() lets other connections run. (conn.state is only for the lists of
 * 06-select.)
 *
 * The rule here: what is needed after a wait must be on the stack. What connections share, such as
 * `chunk` of send_reply(), or errno, another one may have changed. No compiler checks that.
 */
#include "16-coroutines/serve.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "05b-nonblocking/conn.h"
#include "16-coroutines/coroutine.h"
#include "http_parse.h"
#include "reply.h"
#include "stop.h"

/* What one connection may do before others have their turn: 256 KiB, or 16 requests. So a request
 * counts as a sixteenth, beside the bytes of its reply. */
#define TURN_BYTES    (256 * 1024)
#define REQUEST_BYTES (TURN_BYTES / 16)

#define CHUNK 65536

struct serving {
    struct conn *conn;
    bool replied; /* a reply went before, and may still be under way */
    long left;    /* of this turn, in bytes */
    size_t have;  /* bytes in `in`: requests that are read and not yet answered */
    char *in;     /* HTTP_HEAD_MAX */
};

/* Where a thread would sleep: other connections run until this one can go on. */
static enum why await(struct serving *s, enum want want)
{
    enum why why = (enum why)coroutine_yield(want);

    s->left = TURN_BYTES;
    return why;
}

static void begin_step(struct conn *c, enum state state)
{
    c->state = state; /* for 06-select/clients.c: each state has a list of its clients */
    conn_begin_step(c);
}

/*
 * Behaves like recv() on a blocking socket with a time-out (SO_RCVTIMEO): -1 and EAGAIN when the
 * time is over, or the server stops. TOO_LATE: it looks once more, since the client may have sent
 * in time, while the server was busy with others. ECANCELED: the connection must end.
 */
static ssize_t receive(struct serving *s, char *to, size_t size)
{
    enum why why = READY;

    for (;;) {
        ssize_t n = recv(s->conn->fd, to, size, 0);
        if (n >= 0 || (errno != EAGAIN && errno != EINTR))
            return n;
        if (errno == EINTR)
            continue;
        if (why == TOO_LATE || stopping)
            return -1;
        why = await(s, WANT_READ);
        if (why == MUST_END) {
            errno = ECANCELED;
            return -1;
        }
    }
}

/* Ends a connection after its last reply, a time-out or the signal to stop: waits until the client
 * has all. See conn_finish() for the arguments, linger.h for the reason. */
static void linger(struct serving *s, bool unread, bool may_close)
{
    struct conn *c = s->conn;
    enum want want = conn_finish(c, unread, may_close);

    while (want != WANT_CLOSE) {
        enum why why = await(s, want);
        if (why == MUST_END)
            return;
        if (why == TOO_LATE) /* LINGER_LOOK_MS have passed */
            want = conn_expire(c);
        else
            want = linger_read(&c->linger, c->fd);
    }
}

/* Returns the length of the request head at the start of s->in, minus the status for a bad one, or
 * 0: there is none, and the connection is at its end. */
static int read_request(struct serving *s, struct request *req)
{
    int used;

    begin_step(s->conn, READING);
    /* region: reads */
    while ((used = http_parse(s->in, s->have, req)) == 0) {
        size_t room = HTTP_HEAD_MAX - s->have;
        ssize_t n = receive(s, s->in + s->have, room);
        if (n < 0 && errno == EAGAIN)
            linger(s, false, false); /* a reply may be on its way */
        if (n <= 0)
            return 0;
        s->have += (size_t)n;
    }
    /* endregion: reads */
    return used;
}

/*
 * Returns 0, or -1: the client is gone or too slow, or the file is shorter than promised. All
 * connections share one `chunk`: on the stack it would cost each of them 64 KiB. So after a wait
 * another reply may be in it, and what the socket did not take is read from the file again.
 */
static int send_reply(struct serving *s, const struct reply *r)
{
    static char chunk[CHUNK];
    struct conn *c = s->conn;
    off_t sent = 0;

    c->has_read = false;
    begin_step(c, SENDING);
    for (;;) {
        if (s->left <= 0 && await(s, WANT_AGAIN) == MUST_END)
            return -1;
        ssize_t len = reply_next(r, sent, chunk, sizeof chunk);
        if (len <= 0)
            return (int)len;
        ssize_t n = send(c->fd, chunk, (size_t)len, r->may_close ? FIN_FOLLOWS : 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno != EAGAIN || await(s, WANT_WRITE) != READY))
            return -1;
        if (n < 0) /* it has waited, so errno and `chunk` no longer count */
            continue;
        unsent_count(c->fd, sent, sent + n);
        if (sent / STEP_BYTES != (sent + n) / STEP_BYTES)
            conn_begin_step(c);
        sent += n;
        s->left -= n;
        c->has_read = sent >= UNSENT_PROOF;
    }
}

/* One request and its reply. Returns whether the connection goes on. */
static bool serve_one(struct serving *s)
{
    const struct options *o = s->conn->options;
    struct request req;
    struct reply reply;
    int used = read_request(s, &req);

    if (used == 0)
        return false;
    req.keep_alive = req.keep_alive && !stopping;
    req.is_last = req.is_last && !s->replied;
    s->replied = true;
    if (used < 0)
        reply_error(&reply, &req, -used);
    else
        reply_plan(&reply, &req, o->docroot_fd);
    if (o->verbose)
        reply_log(&reply, &req);
    if (used > 0) { /* what follows is the next request: the client may pipeline */
        s->have -= (size_t)used;
        memmove(s->in, s->in + used, s->have);
    }
    s->left -= REQUEST_BYTES;
    bool sent = send_reply(s, &reply) == 0;
    if (reply.fd >= 0)
        close(reply.fd);
    if (sent && !reply.keep_alive)
        linger(s, s->have > 0 || (used > 0 && req.has_body), reply.may_close);
    return sent && reply.keep_alive;
}

int serve_conn(void *conn)
{
    /* Not in the struct, whose initializer would write to all of it: a page of the stack takes
     * memory once it is written to. */
    char in[HTTP_HEAD_MAX];
    struct serving s = {.conn = conn, .left = TURN_BYTES, .in = in};

    while (serve_one(&s))
        continue;
    return WANT_CLOSE;
}
