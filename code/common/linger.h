/*
 * linger.h: the end of a connection that the server decides. Whatever comes after close() is
 * answered with a reset, and a reset takes along what has not been delivered of the last reply. So
 * the socket is shut for sending first, and what still comes is read and thrown away until the peer
 * has acknowledged all (RFC 9112 section 9.6), for the time-out and so many turns' worth of bytes
 * at most. Where the client was still sending it is given another second to look up. Of the
 * acknowledgement no event tells: it has to be looked for. For sockets that do not block; nothing
 * here waits. A client that has said `close` sends no more, so a short reply is its end.
 */
#ifndef LINGER_H
#define LINGER_H

#include <stdbool.h>

#include "want.h"

#define LINGER_LOOK_MS 100 /* between two looks; who has a clock of seconds takes 1000 */

/* Of a connection that begins to linger. */
#define LINGER_CREDIT(timeout_s) ((timeout_s) < 327 ? (timeout_s)*100 : 32767)

struct linger_state {
    bool unread : 1;            /* the client may be sending what nobody will read */
    unsigned short credit : 15; /* a look takes 1 for each 10 ms, a turn full of bytes takes 1 */
};

/* Shuts fd for sending, unless that is gone already: then WANT_CLOSE, else WANT_AGAIN. */
enum want linger_begin(struct linger_state *l, int fd, bool unread, int timeout_s);

/* A turn, when there may be something to read. */
enum want linger_read(struct linger_state *l, int fd);

/* ... and when nothing happened for `ms`. */
enum want linger_look(struct linger_state *l, int fd, int ms);

#endif
