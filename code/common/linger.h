/*
 * linger.h: the end of a connection that the server decides. The kernel answers bytes that come
 * after close() with a reset, and a reset drops what the client has not yet received of the last
 * reply. So the socket is shut for sending first, and what still comes is read and discarded until
 * the peer has acknowledged all (RFC 9112 section 9.6), or the credit is used up. If the client may
 * still be sending, it gets another second to notice. No event reports the acknowledgement: it has
 * to be asked for. For sockets that do not block; nothing here waits.
 */
#ifndef LINGER_H
#define LINGER_H

#include <stdbool.h>

#include "want.h"

#define LINGER_LOOK_MS 100 /* between two looks; 14-owfat has a clock of seconds, and takes 1000 */
#define LINGER_READS   64  /* by recv() in a turn: if all bring bytes, that costs 10 ms of credit */

/* What a connection begins with: its time-out in units of 10 ms. */
#define LINGER_CREDIT(timeout_s) ((timeout_s) < 327 ? (timeout_s)*100 : 32767)

struct linger_state {
    bool unread : 1;            /* the client may be sending bytes that no request will use */
    unsigned short credit : 15; /* a look costs 1 for each 10 ms, a turn full of bytes costs 1 */
};

/* Shuts fd for sending. WANT_AGAIN; WANT_CLOSE if the connection is gone. */
enum want linger_begin(struct linger_state *l, int fd, bool unread, int timeout_s);

/* Reads and discards. WANT_READ, WANT_AGAIN after LINGER_READS, WANT_CLOSE: close fd. */
enum want linger_read(struct linger_state *l, int fd);

/* The same, when nothing happened for `ms`, which the credit pays for. */
enum want linger_look(struct linger_state *l, int fd, int ms);

/* The rules without the calls, for a server that makes those by an io_uring: is there credit for
 * another look after `ms`; and was the last look the last one, if all `arrived` or not? */
bool linger_pay(struct linger_state *l, int ms);
bool linger_is_over(struct linger_state *l, bool arrived);

#endif
