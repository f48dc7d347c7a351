/*
 * known_state.h: a process inherits more than its command line: blocked and ignored signals, a
 * running timer, closed descriptors, a small stack. Each can make a server fail long after the
 * start, and without a message.
 */
#ifndef KNOWN_STATE_H
#define KNOWN_STATE_H

#include <signal.h>

/*
 * The first call of main(). Sets program_name; opens /dev/null as those of descriptors 0 to 2 that
 * are closed; stops all timers; blocks the signals in `held` (NULL: none) and unblocks all others.
 * SIGPIPE is ignored from here on: a client that has gone away is an error of its connection
 * (EPIPE). A failure ends the program. A second call does nothing.
 */
void known_state(const char *argv0, const sigset_t *held);

#endif
