/*
 * master.h: the process that keeps the workers alive, and lets another program take their place
 * without a client being turned away.
 *
 * SIGHUP starts the program anew, in a child, with the same command line and the same listening
 * sockets, which stay open all the time. Once it is ready (successor.h) that child is the master of
 * its own workers, and those of before retire: they accept no more; each reply says that it is the
 * last of its connection, and when all are gone, by that or by their time-out, they end. The first
 * master stays, for it is the process that the administrator and the system know:
 *
 *     before SIGHUP   master --- workers
 *     after it        master -+- workers that retire
 *                             +- master of the new program --- workers
 *     after the next  master -+- master that retires --- workers that retire
 *                             +- master of the new program --- workers
 */
#ifndef MASTER_H
#define MASTER_H

#include <signal.h>
#include <stdbool.h>

#include "options.h"

/* Holds the signals that the master waits for: before anybody can know that it listens. */
void master_begin(void);

/*
 * Starts o->workers processes and keeps as many alive. Returns in each of them, with its number
 * from 0; in the master it returns -1 when all have ended, after SIGTERM or SIGINT, or because it
 * was a successor and retires.
 */
int master_run(const struct options *o, char **argv, const int *fds, int sockets);

/* What all workers have from their master, the listening sockets, and how each of them hears
 * that it is to end: workers.c. */
#define WORKERS_MOST_SOCKETS 1024

/* To a worker: accept no more, and end when the last client has left. Not SIGHUP, which "pkill
 * -HUP" sends to all processes of a name, though it is meant for the master. */
#define RETIRE SIGUSR1

/*
 * The listening sockets, into fds: those of the old program, however many, if this is a successor;
 * else `count` new ones, with their line on stdout. Returns how many. Each gets
 * TCP_DEFER_ACCEPT.
 */
int workers_listen(const struct options *o, int *fds, int count);

/* That of this worker, of so many; the others are closed here, the master keeps them. */
int workers_own(const int *fds, int number, int worker);

/*
 * A descriptor that is readable when a signal is to be taken. workers_signals() reads it: after
 * SIGTERM or SIGINT stopping is true, as in all servers; it is true as well if the worker is to
 * retire, but then *retiring is, too: nobody is hurried.
 */
int workers_signal_fd(void);
void workers_signals(int fd, bool *retiring);

#endif
