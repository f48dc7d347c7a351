/*
 * FreeBSD's tcp(4): taking TCP_NOPUSH away sends what was kept back. OpenBSD's and Apple's manual
 * pages do not promise that; there the next send or the end of the connection does it. NetBSD has
 * no such option. Compiled for them, never run there.
 */
#include "11-sendfile/cork.h"

#include <sys/types.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

int cork(int fd, bool on)
{
    int value = on;

    return setsockopt(fd, IPPROTO_TCP, TCP_NOPUSH, &value, sizeof value);
}
