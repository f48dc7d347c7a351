/*
 * stop.h: ending a server on SIGTERM or SIGINT without losing the reply in flight.
 *
 * The usual recipe, a handler that sets a flag, has a hole: the signal may come after the flag was
 * looked at and before accept() or recv() sleeps, and then nobody wakes it. So the handler also
 * leaves a mark on the descriptors the process may sleep on. From then on accept() fails, and
 * recv() gives what has come and waits for no more, however late they are called; what is still to
 * be sent is sent. (Not shutdown(SHUT_RD) for the client's: the BSDs throw away then what has
 * come, and Linux answers what comes after a half-close with a reset.) POSIX does not promise that
 * of a listening socket: on NetBSD the alarm may be what wakes accept(), STOP_GRACE seconds after
 * a signal in that hole.
 */
#ifndef STOP_H
#define STOP_H

#include <stdatomic.h>

#define STOP_GRACE 5 /* seconds a reply in flight may take after the signal */

/* Atomic, and not volatile sig_atomic_t, because in some servers other threads read it. Lock-free,
 * so a signal handler may write it. */
extern atomic_bool stopping;

/*
 * Installs the handler for SIGTERM and SIGINT. After the signal the process has STOP_GRACE seconds;
 * then SIGALRM ends it with status 0, unless the caller puts another handler in that one's place.
 */
void stop_on_signals(void);

/* What that handler does, for a server that takes the signals from their queue instead. */
void stop_begin(void);

/* From now on a recv() on fd does not wait. One that sleeps already is woken by the signal only
 * where that is this thread's. Safe in a signal handler. */
void stop_waiting(int fd);

/* sigaction(2) as all handlers want it but that of SIGCHLD: no SA_RESTART, as a call that sleeps
 * shall return and look at what happened, and no other handler in between. It ends the program if
 * it fails. */
void stop_handle(int signum, void (*handler)(int));

/* Says what this process may sleep on: the listening socket and the client's; -1 for none. */
void stop_wakes(int listen_fd, int client_fd);

/* For a server that goes on after the signal: closes the listening socket it has named. On Linux
 * nobody can connect to one that is shut; FreeBSD goes on completing connections. */
void stop_listening(void);

#endif
