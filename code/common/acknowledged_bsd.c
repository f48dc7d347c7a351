/* FIONWRITE of FreeBSD and NetBSD: the bytes in the send buffer, where they stay until they are
 * acknowledged. Compiled by `make cross`, never run. */
#include "acknowledged.h"

#include <sys/filio.h>
#include <sys/ioctl.h>

bool all_acknowledged(int fd)
{
    int bytes;

    return ioctl(fd, FIONWRITE, &bytes) == 0 && bytes == 0;
}
