/* end_with_parent.h: a child ends when its parent does. */
#ifndef END_WITH_PARENT_H
#define END_WITH_PARENT_H

#include <sys/types.h>

/* In a child of `parent`: gets SIGTERM as soon as the parent is gone, also by SIGKILL, after which
 * the parent cannot stop its children. Does nothing where the system has no such call. */
void end_with_parent(pid_t parent);

#endif
