/*
 * conn.h: a connection that never waits. conn_handle() goes on with whatever there is to do until
 * the socket would block, and returns what to wait for (want.h). The server waits, each by another
 * system call: the servers from here on differ in that and in little else.
 *
 * From 11-sendfile on replies are found and sent by other means, behind a pointer (struct conn_ops)
 * that is NULL until then.
 *
 * All calls come from one thread: the buffers are shared.
 */
#ifndef CONN_H
#define CONN_H

#include <sys/socket.h>

#include "acknowledged.h"
#include "clock.h"
#include "linger.h"
#include "options.h"
#include "reply.h"
#include "unsent.h"
#include "want.h"

/*
 *     +--- more requests ---+
 *     v                     |
 *  READING a request -> SENDING its reply -> LINGERING -> closed
 */
enum state { READING, SENDING, LINGERING, STATES };

struct conn {
    int fd;
    unsigned short state : 2;
    unsigned short have : 14; /* READING, SENDING: bytes in `in` */
    union {
        struct linger_state linger; /* LINGERING */
        bool has_read;              /* SENDING: has taken so much that it must read: unsent.h */
    };
    char *in; /* what has come of the next request; NULL: nothing. Part of the exchange, if any */
    struct exchange *exchange; /* SENDING: the reply on its way; else NULL */
    long long deadline;        /* of the step in hand, by now_ms(): then conn_timed_out() */
    const struct options *options;
    const struct conn_ops *ops;
};

/* Once the process is stopping, a connection that has asked for nothing more is ended. */
enum want conn_handle(struct conn *c);

/* Closes fd and frees what the connection owns. */
void conn_end(struct conn *c);

struct exchange {
    struct reply reply;
    off_t sent;    /* bytes, head and body */
    bool has_body; /* the request may be followed by bytes that are never read */
    bool found;    /* `reply` is there to be sent; else the file is still being looked up */
    bool waits;    /* for the disk */
    struct conn *conn;
    void *held;  /* what the operations hold beside the open file: NULL at first */
    size_t room; /* bytes of `rest` */
    char rest[]; /* for what has come after the request: more is not read meanwhile */
};

/* How many bytes of the head are still to be sent; and where the body goes on in its file. */
static inline size_t exchange_head_left(const struct exchange *x)
{
    return x->sent < (off_t)x->reply.head_len ? x->reply.head_len - (size_t)x->sent : 0;
}

static inline off_t exchange_offset(const struct exchange *x)
{
    off_t of_body = x->sent - (off_t)x->reply.head_len;

    return x->reply.offset + (of_body > 0 ? of_body : 0);
}

enum sent {
    SENT_ALL,
    SENT_BLOCKED, /* send() gave EAGAIN */
    SENT_BUDGET,  /* as much as was allowed */
    SENT_WAITS,   /* the file has to be waited for */
    SENT_FAILED,  /* the client is gone, or the file is shorter than promised */
};

/*
 * How replies are found and sent. While conn_waits() the answers of conn_handle() mean nothing:
 * the operations know when to go on, and until then the connection must not be ended.
 */
struct conn_ops {
    /* Fills x->reply; NULL: reply_plan(). Returns false if that has to be waited for: then it is
     * called again, with the same request. */
    bool (*find)(struct exchange *x, const struct request *req, int docroot_fd);
    /* Sends what the socket takes, adds it to x->sent, and stops soon after *budget bytes, which it
     * counts down. */
    enum sent (*send)(int fd, struct exchange *x, long *budget);
    /* Closes the file, and gives back what is held; sent or not. */
    void (*end)(struct exchange *x);
    long turn_bytes; /* as TURN_BYTES of conn.c; 0: that */
    /* recv() that brought less than there was room for is not asked again before the next event:
     * for a loop that is told of every byte, and of the client's end (epoll by edge, EPOLLRDHUP).
     */
    bool short_count_is_all;
};

#define SENDFILE_TURN (2L << 20) /* it is quick: as many as nginx (sendfile_max_chunk) */

/* Set where a process that is stopping still waits for the next request of each client. */
extern bool conn_waits_while_stopping;

static inline bool conn_waits(const struct conn *c)
{
    return c->exchange != NULL && c->exchange->waits;
}

/* A step begins: the client has o->timeout seconds for it. */
static inline void conn_begin_step(struct conn *c)
{
    c->deadline = now_ms() + c->options->timeout * 1000LL;
}

static inline long long conn_step_began(const struct conn *c)
{
    return c->deadline - c->options->timeout * 1000LL;
}

/* Makes fd, which does not block (accept_nonblocking()), a connection. */
static inline void conn_init(struct conn *c, int fd, const struct options *o)
{
    *c = (struct conn){.fd = fd, .options = o};
    conn_begin_step(c);
}

static inline enum want conn_begin_to_linger(struct conn *c, bool unread)
{
    c->state = LINGERING;
    c->deadline = now_ms() + LINGER_LOOK_MS;
    return linger_begin(&c->linger, c->fd, unread, c->options->timeout);
}

/*
 * After the last reply, or when the server stops. The FIN first, and then close(): with bytes
 * unread close() alone would throw away what FIN_FOLLOWS holds back.
 */
static inline enum want conn_finish(struct conn *c, bool unread, bool may_close)
{
    if (may_close && !unread) {
        shutdown(c->fd, SHUT_WR); /* fails where the client is gone */
        return WANT_CLOSE;
    }
    return !unread && all_acknowledged(c->fd) ? WANT_CLOSE : conn_begin_to_linger(c, unread);
}

/*
 * When the deadline has passed: the end, but while LINGERING only the next look. A client that has
 * sent something in time, which is not read yet, has a turn first, and so has one that waits for
 * the disk. One that is still receiving the last reply would lose the end of it, if we closed and
 * the next request came then.
 */
static inline enum want conn_timed_out(struct conn *c)
{
    char byte;

    if (conn_waits(c) || (c->state == READING && recv(c->fd, &byte, 1, MSG_PEEK) > 0))
        return WANT_AGAIN;
    if (c->state == READING && !all_acknowledged(c->fd))
        return conn_begin_to_linger(c, false);
    if (c->state != LINGERING)
        return WANT_CLOSE;
    c->deadline = now_ms() + LINGER_LOOK_MS;
    return linger_look(&c->linger, c->fd, LINGER_LOOK_MS);
}

#endif
