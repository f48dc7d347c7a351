#include "acknowledged.h"

#include <sys/ioctl.h>

#if defined(__linux__)
/* SIOCOUTQ of tcp(7), by the name that every libc has. It counts what is not acknowledged, a FIN
 * included, though the manual page says: what is not sent. */
#define UNACKNOWLEDGED TIOCOUTQ
#elif defined(__FreeBSD__) || defined(__NetBSD__) /* compiled by `make cross`, never run */
/* The bytes in the send buffer, where they stay until they are acknowledged. */
#include <sys/filio.h>
#define UNACKNOWLEDGED FIONWRITE
#endif

bool all_acknowledged(int fd)
{
#ifdef UNACKNOWLEDGED
    int bytes;

    return ioctl(fd, UNACKNOWLEDGED, &bytes) == 0 && bytes == 0;
#else /* OpenBSD and macOS do not tell: the server lingers until the client closes */
    (void)fd;
    return false;
#endif
}
