/*
 * conn.h: a connection that never waits. conn_handle() goes on with whatever there is to do until
 * the socket would block, and returns what to wait for. Who waits, and by which system call, is the
 * server's affair: the servers from here on differ in that and in little else.
 *
 * What the answers promise makes level and edge triggering interchangeable:
 * WANT_READ   recv() has just given EAGAIN: nothing that has come is left in the socket (but see
 *             conn_short_count_is_all)
 * WANT_WRITE  send() has just given EAGAIN; that it took less than it was given is no proof yet
 * WANT_AGAIN  there is more to do, but others shall have their turn: call again without waiting for
 *             the socket, which may have nothing new to tell
 * WANT_DISK   a file is being looked up or read by others (12-aio), who will tell; until then the
 *             connection must not be ended, and has no deadline
 * WANT_CLOSE  it is over: conn_end(), but not before the end of the batch of events at hand, in
 *             which the connection may be named once more
 * A call with nothing to do does no harm. All calls come from one thread: the buffers are shared.
 */
#ifndef CONN_H
#define CONN_H

#include <limits.h>
#include <stdbool.h>

#include "options.h"

#define CONN_NEVER LLONG_MAX

enum want { WANT_READ, WANT_WRITE, WANT_AGAIN, WANT_DISK, WANT_CLOSE };

/* region: conn */
struct conn {
    int fd;
    bool lingering : 1; /* the last reply is out, and has perhaps not arrived */
    bool unread : 1;    /* ... and the client may be sending what nobody will read */
    bool no_more : 1;   /* somebody has heard that the client will send no more */
    union {
        unsigned short have;   /* bytes in `in` */
        unsigned short credit; /* while lingering: looks and turns that are left, see conn.c */
    };
    char *in;            /* what has come of a request that is not complete; else NULL */
    struct sending *out; /* the reply on its way; else NULL */
    long long deadline;  /* of the step in hand, by conn_now(): then the connection shall end
                            (lingering: be handled again); CONN_NEVER while it is not the client
                            that is waited for */
    const struct options *options;
};
/* endregion: conn */

/* How many bytes one may be sent before the others have their turn: 256 KiB, unless a server that
 * sends faster than by copying says otherwise. */
extern long conn_turn_bytes;

/* For a loop that hears of every byte, and of a client's end by itself (edge-triggered, with
 * EPOLLRDHUP), and says so in no_more: recv() that brought less than there was room for is not
 * asked again before the next event. */
extern bool conn_short_count_is_all;

/* Milliseconds, of a clock that is never set (now.c). */
long long conn_now(void);

/* Makes fd, just accepted, a connection that does not block. Returns 0, or -1 with errno. */
int conn_init(struct conn *c, int fd, const struct options *o);

/* The same for an fd that does not block already (accept4): cannot fail. */
void conn_adopt(struct conn *c, int fd, const struct options *o);

enum want conn_handle(struct conn *c);

/* From now on nobody is waited for who has not asked: each connection is to be handled once more,
 * what has come is answered, and where a request would have to be waited for the answer is
 * WANT_CLOSE. */
void conn_stop(void);

/* Closes fd and frees what the connection owns. */
void conn_end(struct conn *c);

#endif
