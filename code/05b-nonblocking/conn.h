/*
 * conn.h: a connection that never waits. conn_handle() goes on with whatever there is to do until
 * the socket would block, and returns what to wait for (want.h). Who waits, and by which system
 * call, is the server's affair: the servers from here on differ in that and in little else.
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
    char *in;                  /* what has come of a request that is not complete; else NULL */
    struct exchange *exchange; /* SENDING: the reply on its way; else NULL */
    long long deadline;        /* of the step in hand, by now_ms(): then conn_timed_out() */
    const struct options *options;
};

/* Once the process is stopping, one that has asked for nothing more is ended. */
enum want conn_handle(struct conn *c);

/* Closes fd and frees what the connection owns. */
void conn_end(struct conn *c);

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

static inline void conn_begin_to_send(struct conn *c)
{
    c->state = SENDING;
    c->has_read = false;
    conn_begin_step(c);
}

/* So many bytes of the reply are out, and `before` were. */
static inline void conn_count_sent(struct conn *c, long long before, long long sent)
{
    unsent_count(c->fd, before, sent);
    c->has_read = sent >= UNSENT_PROOF;
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
 * When the deadline has passed: the end, but while LINGERING only the next look. Who has sent
 * something in time that nobody has read yet has a turn first; who is still receiving the last
 * reply would lose the end of it, if we closed and the next request came then.
 */
static inline enum want conn_timed_out(struct conn *c)
{
    char byte;

    if (c->state == READING && recv(c->fd, &byte, 1, MSG_PEEK) > 0)
        return WANT_AGAIN;
    if (c->state == READING && !all_acknowledged(c->fd))
        return conn_begin_to_linger(c, false);
    if (c->state != LINGERING)
        return WANT_CLOSE;
    c->deadline = now_ms() + LINGER_LOOK_MS;
    return linger_look(&c->linger, c->fd, LINGER_LOOK_MS);
}

#endif
