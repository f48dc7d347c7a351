/* With the C library's checks, in whichever way the rest is compiled: glibc has some. */
#undef _FORTIFY_SOURCE
#define _FORTIFY_SOURCE 2 /* before the first header, which looks at it */

#include "facts.h"

void fd_set_checked(int fd, fd_set *set)
{
    FD_SET(fd, set);
}
