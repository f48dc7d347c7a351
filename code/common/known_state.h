/*
 * known_state.h: a process inherits more than its command line: blocked and ignored signals, a
 * running timer, closed descriptors, a small stack. Each can make a server deaf, or end it without
 * a message long after the start.
 */
#ifndef KNOWN_STATE_H
#define KNOWN_STATE_H

#include <signal.h>

/*
 * The first call of main(). Sets program_name; opens /dev/null as those of descriptors 0 to 2 that
 * are closed; stops all timers; lets all signals in but those of `held` (NULL: none), which it
 * blocks. SIGPIPE is ignored from here on: a peer that has gone away is an error of its connection
 * (EPIPE). What fails ends the program. Another call does nothing.
 */
void known_state(const char *argv0, const sigset_t *held);

#endif
