#include "unsent.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#if defined(__linux__) && !defined(TCP_NOTSENT_LOWAT)
#define TCP_NOTSENT_LOWAT 25 /* Linux 3.12; dietlibc does not have it */
#endif

int unsent_limit = 128 * 1024; /* by the experiments slow-readers and slow-readers-cost */
bool unsent_lifts = true;

/* The BSDs have no such limit; macOS has one that was not tried. */
static void set(int fd, int bytes)
{
#ifdef __linux__
    (void)!setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
#else
    (void)fd;
    (void)bytes;
#endif
}

void unsent_limited(int listen_fd)
{
    set(listen_fd, unsent_limit);
}

void unsent_unlimited(int fd)
{
    if (unsent_lifts)
        set(fd, 0); /* what net.ipv4.tcp_notsent_lowat says: by default no limit */
}
