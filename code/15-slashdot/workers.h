/*
 * workers.h: what all workers have from their master, the listening sockets, and how each of them
 * hears that it is to end.
 */
#ifndef WORKERS_H
#define WORKERS_H

#include <signal.h>
#include <stdbool.h>

#include "options.h"

#define WORKERS_MOST_SOCKETS 1024

/* To a worker: accept no more, and end when the last client has left. Not SIGHUP, which "pkill
 * -HUP" sends to all processes of a name, though it is meant for the master. */
#define RETIRE SIGUSR1

/*
 * The listening sockets, into fds: those of the old program, however many, if this is a successor;
 * else `count` new ones, with their line on stdout. Returns how many. Each gets TCP_NODELAY and
 * TCP_DEFER_ACCEPT, which the connections inherit.
 */
int workers_listen(const struct options *o, int *fds, int count);

/*
 * A descriptor that is readable when there is news of signals. workers_news() reads it: after
 * SIGTERM or SIGINT stopping is true, as in all servers; it is true as well if the worker is to
 * retire, but then *retiring is, too: nobody is hurried.
 */
int workers_news_fd(void);
void workers_news(int fd, bool *retiring);

#endif
