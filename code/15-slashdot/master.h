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

/* known_state(), with those signals held that the master waits for: the first call of main(). One
 * that comes while a successor sets itself up must not end it. */
void master_begin(const char *argv0);

/*
 * Starts o->workers processes and keeps as many alive. Returns in each of them, with its number
 * from 0; in the master it returns -1 when all have ended, after SIGTERM or SIGINT, or because it
 * was a successor and retires. When all of the first have said that they serve, the line
 * "listening" is printed; if one of them ends before that, so does the program, with status 1.
 */
int master_run(const struct options *o, char **argv, const int *fds, int sockets);

/* In worker `number`, when it serves. */
void master_hears(int number);

/* What all workers have from their master, the listening sockets, and how each of them hears
 * that it is to end: workers.c. */
#define WORKERS_MOST_SOCKETS 1024

/* To a worker: accept no more, and end when the last client has left. Not SIGHUP, which "pkill
 * -HUP" sends to all processes of a name, though it is meant for the master. */
#define RETIRE SIGUSR1

/*
 * The listening sockets, into fds: those of the old program, however many, if this is a successor;
 * else `count` new ones. Returns how many. Each gets TCP_DEFER_ACCEPT before it listens: a
 * connection has the options that the socket had when it came.
 */
int workers_listen(const struct options *o, int *fds, int count);

/* In a worker that can serve, for its socket: the master may have shut it (master.c). Ends the
 * worker if there is no descriptor for a client. */
void workers_listen_again(int fd, const struct options *o);

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
