/*
 * net.h: the part of sockets that is the same in every server. What it does call by call is
 * written out in code/01-iterative/constant.c.
 */
#ifndef NET_H
#define NET_H

#include <stdbool.h>

#include "options.h"

/*
 * A socket listening on o->addr and o->port with o->backlog: returns it, after the line
 * "NAME: listening on http://ADDR:PORT/" is out on stdout. SIGPIPE is ignored from here on. A call
 * that fails ends the program: nothing is being served yet.
 */
int tcp_listen(const struct options *o);

/*
 * After accept(2) failed with `error`: true if the next call may succeed. Returns only after a
 * tenth of a second where the system is out of descriptors or memory, because the connection stays
 * in the queue and accept would fail again at once, at full speed. False if the listening socket is
 * broken.
 */
bool accept_may_continue(int error);

#endif
