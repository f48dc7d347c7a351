/*
 * workers.h: the process that holds the listening sockets and keeps the workers alive, and how the
 * workers are replaced without a guest being turned away.
 *
 * SIGHUP to the master: it starts itself anew (execve(2): a new program, the same command line, the
 * same process id), with the listening sockets, which stay open all the time. Whoever connects
 * meanwhile waits in their backlog. The workers of before accept no more; each reply says that it
 * is the last of its connection, and when all are gone, by that or by their time-out, they end.
 */
#ifndef WORKERS_H
#define WORKERS_H

#include <stdbool.h>

#include "options.h"

#define WORKERS_MOST_SOCKETS 1024

/*
 * The listening sockets, into fds: those of the master of before, however many, if SIGHUP has made
 * this one of it; else `count` new ones, with their line on stdout. Returns how many. Each gets
 * TCP_NODELAY and TCP_DEFER_ACCEPT, which the connections inherit.
 */
int workers_listen(const struct options *o, int *fds, int count);

/*
 * Starts o->workers processes and keeps as many alive. Returns in each of them, with its number
 * from 0; in the master it returns -1 when all have ended after SIGTERM or SIGINT.
 */
int workers_start(const struct options *o, char **argv, const int *fds, int count);

/*
 * For a worker: a descriptor that is readable when there is news of signals. workers_news() reads
 * it: after SIGTERM or SIGINT stopping is true, as in all servers; after SIGHUP it is true as well,
 * but *retiring is: nobody is hurried then.
 */
int workers_news_fd(void);
void workers_news(int fd, bool *retiring);

#endif
