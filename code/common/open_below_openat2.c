#include "open_below.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc 2.36 has no wrapper, and musl-gcc does not find <linux/openat2.h>: the kernel's interface
 * by hand, openat2(2). */
struct open_how_v0 {
    uint64_t flags;
    uint64_t mode;
    uint64_t resolve;
};
#define RESOLVE_NO_MAGICLINKS_V0 0x02
#define RESOLVE_BENEATH_V0       0x08

#ifndef SYS_openat2
#define SYS_openat2 437 /* the same number on every architecture */
#endif

int open_below(int root, const char *path)
{
    struct open_how_v0 how = {
        .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH_V0 | RESOLVE_NO_MAGICLINKS_V0,
    };

    /* EAGAIN: a folder on the way was renamed meanwhile, and the kernel cannot tell where ".."
     * leads. If it persists it is returned: the walk would refuse links that are allowed. */
    for (int tries = 0; tries < 8; tries++) {
        long fd = syscall(SYS_openat2, root, path, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR && errno != ENOSYS && errno != EPERM))
            return (int)fd;
        if (errno == ENOSYS || errno == EPERM) /* before Linux 5.6, or a container's filter */
            return open_below_walk(root, path);
    }
    return -1;
}
