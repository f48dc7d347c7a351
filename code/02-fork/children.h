/*
 * children.h: which processes a server has started and not yet waited for. Taught in 02-fork, used
 * by every server that forks.
 *
 * The list is changed by the handler of SIGCHLD. So everything here is called between
 * children_hold() and children_release(), while no handler can run; except children_init(),
 * and children_wait_for_turn() and children_end(), which hold and release by themselves.
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

/* Blocks the signals that have handlers, so that a child cannot end before it is in the list; and
 * unblocks them. */
void children_hold(void);
void children_release(void);

/* Enters what fork() returned. After -1 children_wait_for_turn() waits for the next round. */
void children_add(pid_t pid);

/* Sleeps until there is room for one more, or the server is told to stop. */
void children_wait_for_room(void);

/*
 * For a server that starts its children before there are clients: sleeps until the next one may be
 * started. As many as there is room for may start at once, and the next round a second later, since
 * a child may die as soon as it is started. Returns false when the server is told to stop, or when
 * no child has lived for some seconds.
 */
bool children_wait_for_turn(void);

/* In the child, instead of children_release(): in place of the parent's handlers come those of
 * stop_on_signals(). */
void children_forget(void);

/* Asks all children to stop, kills those that have not after STOP_GRACE seconds, and waits for
 * them. */
void children_end(void);

#endif
