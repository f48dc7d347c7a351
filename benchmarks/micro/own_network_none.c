/* For systems without network namespaces, and C libraries that do not know all of it. */
#include <errno.h>

#include "die.h"
#include "own_network.h"

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
