#include "own_network.h"

#include "die.h"

/* dietlibc does not know all of it. */
#if defined(__linux__) && !defined(__dietlibc__)

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd == -1)
        die_errno("socket");
    if (ioctl(fd, SIOCGIFFLAGS, &request) == -1)
        die_errno("ioctl SIOCGIFFLAGS");
    request.ifr_flags |= IFF_UP;
    if (ioctl(fd, SIOCSIFFLAGS, &request) == -1)
        die_errno("ioctl SIOCSIFFLAGS");
    if (close(fd) == -1)
        die_errno("close");
}

void own_network(void)
{
    int users = geteuid() == 0 ? 0 : CLONE_NEWUSER;
    if (unshare(CLONE_NEWNET | users) == -1)
        die(EXIT_UNSUPPORTED, "no network namespace: %s", strerror(errno));
    loopback_up();
}

int port_range(int *low, int *high)
{
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
    if (file == NULL)
        return -1;
    int count = fscanf(file, "%d %d", low, high);
    if (fclose(file) == EOF)
        return -1;
    errno = EINVAL;
    return count == 2 && 0 < *low && *low < *high && *high < 65536 ? 0 : -1;
}

int bind_address_only(int fd)
{
    const int on = 1;
    return setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
}

#else

#include <errno.h>

void own_network(void)
{
    die(EXIT_UNSUPPORTED, "Linux, with glibc or musl, is needed for a network of our own");
}

int port_range(int *low, int *high)
{
    *low = *high = 0;
    errno = ENOSYS;
    return -1;
}

int bind_address_only(int fd)
{
    (void)fd;
    errno = ENOSYS;
    return -1;
}

#endif
