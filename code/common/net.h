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

/* The last call of the set-up: the line "NAME: listening on http://ADDR:PORT/" on stdout. A client
 * that reads it is served: all options are set, all that the server needs is there. So the program
 * ends here if it has no descriptors left, by demand_room(), or the line cannot be written. */
void tcp_ready(int listen_fd, const struct options *o);
void demand_room(int listen_fd);

/* The same for a socket that does not block in accept(): the peer may have left since. The
 * signal to stop wakes it (stop_wakes()). */
int tcp_listen_nonblocking(const struct options *o);

/* The same for `count` sockets at one address (SO_REUSEPORT), among which the kernel spreads the
 * connections: into fds. prepare() sets the options of each before it listens. Another server at
 * this address is an error, as it is without SO_REUSEPORT. */
void tcp_listen_each(const struct options *o, int *fds, int count, void (*prepare)(int fd));

/* accept(2), for a connection that does not block. Returns it, or -1 with errno. */
int accept_nonblocking(int listen_fd);
#define ACCEPTS 16 /* in a pass at most: a flood of connections must not keep clients waiting */

/*
 * What the errno of a failed accept(2) says of the next call. An error of one connection has left
 * the queue with it: false, accept again. With any other the next call will fail as well, at once
 * and at full speed, for the connection stays in the queue: true, after a line that says so unless
 * the last such line, however long ago, was the same; and the caller does not accept for
 * ACCEPT_PAUSE_MS. So too where errors of one connection come ACCEPT_IN_A_ROW in that time, and no
 * accept_succeeded() among them (accept_nonblocking() calls it): then they are the system's. If the
 * listening socket itself is broken, this ends the program.
 */
#define ACCEPT_PAUSE_MS 100
#define ACCEPT_IN_A_ROW 64
bool accept_must_pause(int error);
void accept_succeeded(void);

/* Of those: descriptors or memory have run out. A client that leaves makes room. */
bool accept_lacks_room(int error);

/* For servers that sleep in accept(): takes the pause, if there must be one. */
void accept_failed(int error);

#endif
