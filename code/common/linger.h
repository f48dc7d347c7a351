/*
 * linger.h: how a connection ends when it is the server that ends it. The kernel answers bytes that
 * come after close() with a reset, and a reset drops what the client has not yet received of the
 * last reply. So the socket is shut for sending first, and what still comes is read and discarded
 * until the peer has acknowledged all (RFC 9112 section 9.6), or its credit, -t seconds, is spent.
 * If the client may still be sending, it gets another second to notice. No event reports the
 * acknowledgement, so we look again and again. For sockets that do not block; nothing here waits.
 */
#ifndef LINGER_H
#define LINGER_H

#include <stdbool.h>

#include "want.h"

#define LINGER_LOOK_MS 100 /* between two looks; 14-owfat has a clock of seconds, and takes 1000 */
#define LINGER_READS   64  /* recv() calls in a turn; one full of bytes costs 10 ms of credit */

/* The credit at the beginning: the time-out in units of 10 ms, as far as 15 bits can hold it. */
#define LINGER_CREDIT(timeout_s) ((timeout_s) < 327 ? (timeout_s)*100 : 32767)

struct linger_state {
    bool unread : 1;            /* the client may be sending bytes that no request will use */
    unsigned short credit : 15; /* what is left: to wait 10 ms costs 1, a turn full of bytes 1 */
};

/* Shuts fd for sending, fills *l. Returns WANT_AGAIN; WANT_CLOSE if the connection is gone. */
enum want linger_begin(struct linger_state *l, int fd, bool unread, int timeout_s);

/* Reads and discards. Returns WANT_READ, WANT_AGAIN after LINGER_READS, or WANT_CLOSE: close fd. */
enum want linger_read(struct linger_state *l, int fd);

/* The same after `ms` in which nothing happened: they are first taken off the credit. */
enum want linger_look(struct linger_state *l, int fd, int ms);

/* For 13, which calls by io_uring. linger_pay() takes `ms` off the credit; false: too few are left.
 * linger_is_over(): may fd be closed? Once all has `arrived` no more than 1 s of credit is left. */
bool linger_pay(struct linger_state *l, int ms);
bool linger_is_over(struct linger_state *l, bool arrived);

#endif
