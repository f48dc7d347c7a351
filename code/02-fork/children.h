/*
 * children.h: which processes a server has started and not yet waited for. Taught in 02-fork, used
 * by every server that forks.
 *
 * The list is changed by the handler of SIGCHLD. So everything here is called between
 * children_hold() and children_release(), while no handler can run; but not children_init(), nor
 * children_wait_for_turn() and children_end(), which would sleep for ever.
 */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Makes room for `most` children (0: a default) and installs the handlers, after stop_on_signals().
 * A failure ends the program.
 */
void children_init(int most);

/* Blocks the signals that have handlers, so that a child cannot end before it is noted; and lets
 * them in again. */
void children_hold(void);
void children_release(void);

/* Notes what fork() returned; after a failure (-1) the next turn does not come at once. */
void children_add(pid_t pid);

/* Sleeps until there is room for one more, or the server is told to stop. */
void children_wait_for_room(void);

/*
 * For a server that has its children beforehand: sleeps until the next one may be started. At first
 * and after deaths all may be that there is room for, and then none for a second, since some die as
 * soon as they live. Returns false when the server is told to stop, or none lives for seconds.
 */
bool children_wait_for_turn(void);

/* In the child, instead of children_release(): none of these handlers is the child's business. */
void children_forget(void);

/* Asks all children to stop, kills those that have not after STOP_GRACE seconds, and waits for
 * them. */
void children_end(void);

#endif
