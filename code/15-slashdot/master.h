/*
 * master.h: the process that keeps the workers alive, and has another program take their place
 * without refusing a client.
 *
 *     master                 waits for signals (sigtimedwait); serves no client
 *      +-- worker 0          an event_loop() (server.c), its listening socket, its file cache
 *      |     `-- threads     20, that wait for the disk: 4 for names, 16 for bytes (-r)
 *      +-- worker 1
 *     ...                    one for each core (-w)
 *
 * They hear of each other by: a pipe, on which a worker writes its number when it serves; signals,
 * SIGTERM to stop, RETIRE to accept no more and to end when the last client has left; SIGCHLD.
 * A worker that ends is started again.
 *
 * A restart, by SIGHUP. The listening sockets stay open all the time, so no connection is refused:
 *
 *  1  master -+- workers             master runs the program again, in a child: the candidate
 *             `- candidate           (successor.h), with the same command line and sockets
 *
 *  2  master -+- workers             the candidate sets itself up and starts its own workers,
 *             `- candidate - workers which accept no client yet. If it fails, or is not ready in
 *                                    10 s, it is stopped, a line says why, and the old workers
 *                                    have noticed nothing
 *
 *  3  master -+- workers (retire)    when all its workers can serve it writes "ready" to the
 *             `- successor - workers master and they accept. The master sends RETIRE to the old
 *                                    ones: each reply is the last of its connection; they end when
 *                                    their clients have left
 *
 *  4  master --- successor - workers the first process stays: others know its process ID. The
 *                                    next SIGHUP starts another candidate, and the successor then
 *                                    retires with its workers
 */
#ifndef MASTER_H
#define MASTER_H

#include <signal.h>
#include <stdbool.h>

#include "options.h"

/* known_state(), with the signals blocked that the master waits for: one that comes while a
 * successor sets itself up must not end it. The first call of main(). */
void master_begin(const char *argv0);

/*
 * Starts o->workers processes and keeps as many alive. Returns in each of them, with its number
 * from 0; in the master it returns -1 when all have ended, after SIGTERM or SIGINT, or because it
 * was a successor and retires. When all of the first have said that they serve, the line
 * "listening" is printed; if one of them ends before that, so does the program, with status 1.
 */
int master_run(const struct options *o, char **argv, const int *fds, int sockets);

/*
 * In worker `number`, when it can serve: tells the master, and returns when all of the first
 * workers have told it, or when signal_fd is readable. Before that none accepts: if another one
 * fails, no client has come to a program that ends at once.
 */
void worker_tells_master(int number, int signal_fd);

/* ---- workers.c: the listening sockets, and how a worker hears that it is to end */

#define WORKERS_MOST_SOCKETS 1024

/* To a worker or a successor, which ignore it from others than their parent. Not SIGHUP or SIGUSR1:
 * "pkill -HUP" sends that to all processes of a name, and while one from others is pending the
 * kernel drops the one of the parent. A real-time signal is queued (signal(7)). SIGRTMAX: it has
 * one number in all C libraries, and the program that sends it may be of an older build. */
#define RETIRE SIGRTMAX

/*
 * Puts the listening sockets into fds: in a successor those of the old program, however many, else
 * `count` new ones. Returns how many. Each gets TCP_DEFER_ACCEPT; new ones before listen(), since a
 * connection inherits the options that the socket had when it came.
 */
int workers_listen(const struct options *o, int *fds, int count);

/* In a worker that can serve: makes its socket listen, which the master may have shut. Ends the
 * worker if there is no descriptor for a client. */
void workers_listen_again(int fd, const struct options *o);

/* Returns the socket of this worker, and closes the others; the master keeps them. */
int workers_own(const int *fds, int number, int worker);

/*
 * A descriptor that is readable when a signal is pending. workers_signals() takes the signals:
 * after SIGTERM or SIGINT `stopping` is true, as in all servers; after RETIRE both `stopping` and
 * *retiring are. After RETIRE clients keep their deadlines (-t); else all end within STOP_GRACE
 * seconds.
 */
int workers_signal_fd(void);
void workers_signals(int fd, bool *retiring);

#endif
