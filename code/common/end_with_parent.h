/* end_with_parent.h: no process without the one that would stop it. */
#ifndef END_WITH_PARENT_H
#define END_WITH_PARENT_H

#include <sys/types.h>

/* In a child of `parent`: SIGTERM comes as soon as that process is gone, also by SIGKILL, after
 * which it can ask nobody to stop. Does nothing where the system has no such thing. */
void end_with_parent(pid_t parent);

#endif
