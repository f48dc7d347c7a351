/* Without the C library's checks: some distributions compile with them unless told otherwise. */
#undef _FORTIFY_SOURCE

#include "facts.h"

void fd_set_plain(int fd, fd_set *set)
{
    FD_SET(fd, set);
}
