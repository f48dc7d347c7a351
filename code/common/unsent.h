/*
 * unsent.h: how much of a reply the kernel holds that it has not even sent. Without a limit that
 * is the whole send buffer, some megabytes, whether the client reads or not; and a thousand who do
 * not read are gigabytes of memory that no process owns. With a limit (TCP_NOTSENT_LOWAT, tcp(7))
 * a socket takes more only when less than that waits in it. But then who reads fast is served in
 * small portions. So the limit holds until a client has shown that it reads.
 */
#ifndef UNSENT_H
#define UNSENT_H

#include <stdbool.h>

/* Bytes, 0: none; and whether the limit is lifted for those who read. To be set, if at all, before
 * there is a listening socket. */
extern int unsent_limit;
extern bool unsent_lifts;

/* Of a reply, which one who does not read never takes: the limit and what a receive buffer holds at
 * first are less. Then the limit is lifted. */
#define UNSENT_PROOF (1 << 20)

/* The floor under a reply: a client has -t seconds for each STEP_BYTES of it. When others wait for
 * its place it has FULL_STEP_MS, unless it has taken UNSENT_PROOF: that many bytes at this rate
 * would have earned it 16 s. */
#define STEP_BYTES   65536
#define FULL_STEP_MS 1000

/* For a listening socket, whose connections inherit it. Where the system has no such limit, or
 * refuses it, there is none. */
void unsent_limited(int listen_fd);

/* For the connection of a client that has taken UNSENT_PROOF bytes. */
void unsent_unlimited(int fd);

/* The same, when so many bytes of a reply are out, and `before` were. */
static inline void unsent_count(int fd, long long before, long long sent)
{
    if (before < UNSENT_PROOF && sent >= UNSENT_PROOF)
        unsent_unlimited(fd);
}

#endif
