/* For systems without epoll, and C libraries that do not know all of it. */
#include <errno.h>

#include "die.h"
#include "herd.h"

const struct way *way_named(const char *name)
{
    die(EXIT_UNSUPPORTED, "%s: Linux, with glibc or musl, is needed to count wake-ups", name);
}

int share_port(int fd)
{
    (void)fd;
    errno = EINVAL;
    return -1;
}

unsigned long voluntary_switches(pid_t pid)
{
    (void)pid;
    die(EXIT_UNSUPPORTED, "context switches are not counted here");
}
