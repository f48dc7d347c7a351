/*
 * net.h: the part of sockets that is the same in every server. What it does call by call is
 * written out in code/01-iterative/constant.c.
 */
#ifndef NET_H
#define NET_H

#include <stdbool.h>

#include "options.h"

/* A socket listening on o->addr and o->port with o->backlog. After that root is given up
 * (privileges_drop()). A call that fails ends the program: nothing is being served yet. */
int tcp_listen(const struct options *o);

/* The same, with O_NONBLOCK: a client may leave between the event and accept(), which would then
 * sleep. Calls stop_wakes(), so that the signal to stop makes the socket readable. */
int tcp_listen_nonblocking(const struct options *o);

/* The same for `count` sockets at one address (SO_REUSEPORT), among which the kernel spreads the
 * connections: into fds. prepare() sets the options of each before it listens. Another server at
 * this address is an error, as it is without SO_REUSEPORT. */
void tcp_listen_each(const struct options *o, int *fds, int count, void (*prepare)(int fd));

/* The last call of the set-up: the line "NAME: listening on http://ADDR:PORT/" on stdout. A client
 * that reads it is served: all options are set, all that the server needs is there. So the program
 * ends here if the line cannot be written, or demand_room() finds no room. */
void tcp_ready(int listen_fd, const struct options *o);

/* Ends the program if there are not two more descriptors. listen_fd is only for dup(). */
void demand_room(int listen_fd);

/* accept(2), with O_NONBLOCK for the new descriptor. Returns that, or -1 with errno: see below. */
int accept_nonblocking(int listen_fd);
#define ACCEPTS 16 /* in a pass at most: a flood of connections must not keep clients waiting */

/*
 * What to do after accept(2) has failed with this errno.
 * - The error was that of one connection, which has left the queue, or EAGAIN: false, go on.
 * - Any other: the next call would fail as well, at once (EMFILE even if no connection waits).
 *   True: the caller does not accept for ACCEPT_PAUSE_MS. A line on stderr names the error, unless
 *   the last such line, however long ago, named the same.
 * - ACCEPT_IN_A_ROW errors of one connection in that time, and no accept_succeeded() among them
 *   (accept_nonblocking() calls it): true, since so many in a row are a fault of the system.
 * - The listening socket itself is broken: this ends the program.
 */
#define ACCEPT_PAUSE_MS 100
#define ACCEPT_IN_A_ROW 64
bool accept_must_pause(int error);
void accept_succeeded(void);

/* True if descriptors or memory have run out. A client that leaves makes room. */
bool accept_lacks_room(int error);

/* For servers that sleep in accept(): sleeps for the pause, if there must be one. */
void accept_failed(int error);

#endif
