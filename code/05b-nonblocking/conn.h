/*
 * conn.h: a connection that never waits. conn_handle() reads, looks up and sends until the socket
 * would block, the disk must be waited for, or the turn is over; it returns what to wait for
 * (want.h). Each server waits by another system call, and differs from the others in little else.
 *
 * From 11-sendfile on replies are found and sent by operations (struct conn_ops); before, that
 * pointer is NULL. All calls must come from one thread: the buffers are shared.
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
 *  READING a request -> SENDING its reply -> LINGERING --+-> closed
 *     |     |               |                   ^        |
 *     |     +-- the server ends the connection -+        |
 *     +----- error, time-out, or all has arrived --------+
 * (After a time-out a READING client whose last reply has not arrived yet becomes LINGERING first.)
 */
enum state { READING, SENDING, LINGERING, STATES };

struct conn {
    int fd;
    unsigned short state : 2;
    unsigned short have : 14; /* READING, SENDING: bytes in `in` */
    union {
        struct linger_state linger; /* LINGERING */
        struct {
            bool has_read : 1; /* SENDING: has taken UNSENT_PROOF bytes, so it reads */
            bool replied : 1;  /* it had a reply before, which may still be under way */
            bool renewed : 1;  /* the step has its time once more, after a stall (clock.h) */
        };
    };
    char *in; /* bytes of the next request, or NULL. While SENDING: exchange->rest */
    struct exchange *exchange; /* SENDING: the reply on its way; else NULL */
    long long deadline;        /* of the step, or LINGERING the next look: conn_expire() */
    const struct options *options;
    const struct conn_ops *ops;
};

/* One turn: as much as can be done now. On WANT_CLOSE the caller calls conn_end(). When the process
 * is stopping, a connection without a complete request is finished (conn_finish()). */
enum want conn_handle(struct conn *c);

/* Closes fd and frees what the connection owns; *c itself is the caller's. */
void conn_end(struct conn *c);

struct exchange {
    struct reply reply;
    off_t sent;    /* bytes, head and body */
    bool has_body; /* the request may be followed by bytes that are never read */
    bool found;    /* `reply` is there to be sent; else the file is still being looked up */
    bool waits;    /* for the disk */
    struct conn *conn;
    void *held;  /* the operations' own; NULL at first, and freed by their end() */
    size_t room; /* bytes of `rest` */
    char rest[]; /* what had come after the request; no more is read while SENDING */
};

/* How many bytes of the head are still to be sent; and the offset in the file of the next of the
 * body. */
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
    SENT_BUDGET,  /* the budget is used up */
    SENT_WAITS,   /* for the disk */
    SENT_FAILED, /* the client is gone, or the file is shorter than promised: the connection ends */
};

/*
 * How replies are found and sent. While conn_waits_for_disk(c), a job uses c's memory and
 * descriptors: conn_end(c) must not be called, and conn_handle() does not ask for it. When the job
 * is over the server calls conn_handle() again.
 */
struct conn_ops {
    /* Fills x->reply. Returns false if that has to be waited for: it is called again, with the same
     * request, when conn_handle() is. NULL: reply_plan(). */
    bool (*find)(struct exchange *x, const struct request *req, int docroot_fd);
    /* Sends until the socket would block or *budget bytes are sent; takes what it has sent off
     * *budget and adds it to x->sent. */
    enum sent (*send)(int fd, struct exchange *x, long *budget);
    /* Closes the file and frees x->held, whether or not all is sent. */
    void (*end)(struct exchange *x);
    long turn_bytes; /* the most that one turn sends; 0: TURN_BYTES (conn.c) */
    /* After a recv() that brought less than there was room for, wait for the next event instead of
     * calling it until EAGAIN. Only for epoll by edge, with EPOLLRDHUP: else the client's end may
     * go unnoticed. */
    bool short_count_is_all;
};

/* sendfile() copies nothing in the process, so its turn may be longer. nginx's sendfile_max_chunk
 * is 2 MiB, too. */
#define SENDFILE_TURN (2L << 20)

/* Set where a process that is stopping still waits for the next request of each client (15). */
extern bool conn_serves_while_stopping;

static inline bool conn_waits_for_disk(const struct conn *c)
{
    return c->exchange != NULL && c->exchange->waits;
}

/* A step begins: the client has o->timeout seconds for it. */
static inline void conn_begin_step(struct conn *c)
{
    c->deadline = now_ms() + c->options->timeout * 1000LL;
    c->renewed = false;
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
 * Ends a connection after its last reply, or when the server stops. `unread`: the client has sent,
 * or may be sending, bytes that no request will use. `may_close`: it sends no more and the reply is
 * short, so that we need not linger. Then shutdown() sends the packet that FIN_FOLLOWS holds back:
 * if bytes have come in the meantime, close() alone would reset the connection and lose it.
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
 * The turn of a connection whose deadline has passed. WANT_AGAIN if it waits for the disk, or is
 * READING and bytes have come. READING with a reply that is not acknowledged: begins to
 * linger, since a request that comes after close() would reset the connection and lose the reply.
 * LINGERING: another look. All others: WANT_CLOSE; a reply that is being sent is cut off.
 */
static inline enum want conn_expire(struct conn *c)
{
    char byte;

    if (conn_waits_for_disk(c) || (c->state == READING && recv(c->fd, &byte, 1, MSG_PEEK) > 0))
        return WANT_AGAIN;
    if (c->state == READING && !all_acknowledged(c->fd))
        return conn_begin_to_linger(c, false);
    if (c->state != LINGERING)
        return WANT_CLOSE;
    c->deadline = now_ms() + LINGER_LOOK_MS;
    return linger_look(&c->linger, c->fd, LINGER_LOOK_MS);
}

#endif
