/*
 * O_RESOLVE_BENEATH of FreeBSD 13, open(2). A kernel before that would not look at the flag.
 * Compiled by `make cross`, never run.
 */
#include "open_below.h"

#include <errno.h>
#include <fcntl.h>

int open_below(int root, const char *path)
{
    int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_RESOLVE_BENEATH;
    int fd;

    do
        fd = openat(root, path, flags);
    while (fd < 0 && errno == EINTR);
    if (fd < 0 && errno == ENOTCAPABLE) /* FreeBSD's word for EXDEV */
        errno = EXDEV;
    return fd;
}
