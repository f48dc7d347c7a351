/*
 * stop.h: ending a server on SIGTERM or SIGINT without losing the reply in flight.
 *
 * A handler that only sets a flag has a race: the signal may come after the flag was read and
 * before accept() or recv() sleeps, and then nothing wakes the process. So the handler also changes
 * the descriptors on which the process may sleep. From then on accept() fails, and recv() returns
 * what has come and waits for no more, however late they are called; replies are still sent. It
 * does not use shutdown(SHUT_RD) for a client: the BSDs then discard what has come, and Linux, once
 * the socket is shut for sending too, answers what still comes with a reset. POSIX does not promise
 * that shutting a listening socket wakes accept(): on NetBSD, after a signal in that race, the
 * alarm does, STOP_GRACE seconds later.
 */
#ifndef STOP_H
#define STOP_H

#include <stdatomic.h>

#define STOP_GRACE 5 /* seconds a reply in flight may take after the signal */

/* Atomic, and not volatile sig_atomic_t, because in some servers other threads read it. Lock-free,
 * so a signal handler may write it. */
extern atomic_bool stopping;

/*
 * Installs the handlers for SIGTERM and SIGINT, and that for SIGALRM, in whose place the caller may
 * put another. After the signal to stop the process has STOP_GRACE seconds; then SIGALRM ends it
 * with status 0. Before that SIGALRM ends the waiting for the client that stop_wakes() has named:
 * recv() and send() return what can be had at once, and then fail with EAGAIN. If there is no such
 * client it ends the process.
 */
void stop_on_signals(void);

/* What the handlers of SIGTERM and SIGINT do: for servers that learn of signals in another way. */
void stop_begin(void);

/* From now on recv() on fd does not wait. One that sleeps already sleeps on, unless a signal
 * interrupts its thread. Safe in a signal handler. */
void stop_waiting(int fd);

/* If SIGALRM has ended the waiting for a client: recv() and send() wait again, without a limit. */
void stop_wait_again(void);

/* sigaction(2) for all handlers but that of SIGCHLD: without SA_RESTART, so that a call that sleeps
 * returns, and with all signals blocked in the handler. Ends the program if it fails. */
void stop_handle(int signum, void (*handler)(int));

/* Says what this process may sleep on: the listening socket and the client's; -1 for none. */
void stop_wakes(int listen_fd, int client_fd);

/* For a server that goes on after the signal: closes the listening socket that it has named. Linux
 * refuses connections to one that is shut; FreeBSD goes on completing them. */
void stop_listening(void);

#endif
