/* end_with_parent.h: a child ends when its parent does. */
#ifndef END_WITH_PARENT_H
#define END_WITH_PARENT_H

#include <sys/types.h>

/* In a child of `parent`: the kernel sends it SIGTERM when the parent ends, also by SIGKILL, which
 * leaves the parent no time to do so. Other systems: only if the parent has ended already. */
void end_with_parent(pid_t parent);

#endif
