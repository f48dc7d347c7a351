/*
 * unsent.h: how much of a reply the kernel may hold that it has not yet sent. Without a limit that
 * is the whole send buffer, some megabytes: a thousand clients that do not read take gigabytes,
 * which no process owns. With a limit (TCP_NOTSENT_LOWAT, tcp(7)) a socket takes more only when
 * less than that waits in it; but a client that reads fast is then served in small portions. So the
 * limit holds until a client has shown that it reads.
 */
#ifndef UNSENT_H
#define UNSENT_H

#include <stdbool.h>

/* The limit in bytes, 0: none; and whether it is lifted for clients that read. Set them before
 * there is a listening socket. */
extern int unsent_limit;
extern bool unsent_lifts;

/* When so many bytes of a reply are sent the limit is lifted. A client that does not read never
 * gets there: the limit and the usual first receive buffer together hold less. */
#define UNSENT_PROOF (1 << 20)

/* How slow a client may read: -t seconds for each STEP_BYTES of a reply. When room is needed for
 * another client, one that took less than STEP_BYTES in FULL_STEP_MS may be ended; not if it has
 * taken UNSENT_PROOF bytes of this reply. */
#define STEP_BYTES   65536
#define FULL_STEP_MS 1000

/* Sets the limit on a listening socket; connections inherit it. If the system refuses, there is no
 * limit.
 */
void unsent_limited(int listen_fd);

/* Lifts the limit of a connection, if unsent_lifts: its client has taken UNSENT_PROOF bytes. */
void unsent_unlimited(int fd);

/* To be called after each send: `before` bytes of the reply were sent before it, now `sent` are. */
static inline void unsent_count(int fd, long long before, long long sent)
{
    if (before < UNSENT_PROOF && sent >= UNSENT_PROOF)
        unsent_unlimited(fd);
}

#endif
