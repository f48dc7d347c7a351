/*
 * spawn_ways.h: the ways to make a child process, one function each. The child executes `program`,
 * or, if that is NULL, ends at once. Each returns the child's process id, or -1 with errno. A child
 * that cannot execute its program ends with status CANNOT_EXECUTE.
 */
#ifndef SPAWN_WAYS_H
#define SPAWN_WAYS_H

#include <sys/types.h>

#define CANNOT_EXECUTE 127 /* what shells and posix_spawn() use too */

/* The child has the parent's memory as its own, to be copied page by page when one writes. */
pid_t spawn_by_fork(const char *program);

/* The child runs in the parent's memory, on its stack, and the parent waits until it is gone. */
pid_t spawn_by_vfork(const char *program);

/* The same by the library: posix_spawn(3). Needs a program. Ends with 77 in a libc without it. */
pid_t spawn_by_posix_spawn(const char *program);

/*
 * The same by the system call under it, clone3(2) with CLONE_VM and CLONE_VFORK, on a stack of the
 * child's own. Ends with 77 on processors for which nobody has written it.
 */
pid_t spawn_by_clone3(const char *program);

/* What a child does, for those above. */
_Noreturn void spawn_child(const char *program);

#endif
