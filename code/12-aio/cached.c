#include "12-aio/cached.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#define STRIDE (64 * 1024) /* between the pages that is_cached() asks for */

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20 /* headers of before Linux 5.12 */
#endif

/* File systems whose open() needs only the name and the inode. Others may wait in it. */
static bool opens_from_memory(int root)
{
    struct statfs fs;

    if (fstatfs(root, &fs) < 0)
        return false;
    switch ((unsigned long)fs.f_type) {
    case EXT4_SUPER_MAGIC: /* ext2 and ext3 too */
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case SQUASHFS_MAGIC:
    case TMPFS_MAGIC:
        return true;
    default:
        return false;
    }
}

const struct open_how *cached_how(int root)
{
    static const struct open_how how = {
        .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV | RESOLVE_CACHED,
    };
    static int asked = -1;
    static bool can;

    if (asked != root) /* once: a server has one root */
        can = opens_from_memory(root);
    asked = root;
    return can ? &how : NULL;
}

bool cached_is_all(int root)
{
    struct statfs fs;

    return fstatfs(root, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

int open_cached(int root, const char *path)
{
    const struct open_how *how = cached_how(root);
    long fd = how != NULL ? syscall(SYS_openat2, root, path, how, sizeof *how) : -1;

    /* ENOSYS, EINVAL, EPERM: before Linux 5.6, before 5.12, forbidden by a container's filter.
     * EXDEV: another file system, or out of root: open_below(), in a thread, tells these apart. */
    if (how == NULL || (fd < 0 && (errno == ENOSYS || errno == EINVAL || errno == EPERM ||
                                   errno == EINTR || errno == EXDEV)))
        errno = EAGAIN;
    return (int)fd;
}

/* tmpfs and FUSE know no RWF_NOWAIT, but tmpfs has no disk. Its files have seals (fcntl(2)), those
 * of FUSE have none; statfs(2) would ask the program behind FUSE, and wait for it. */
static bool is_tmpfs(int fd)
{
    return fcntl(fd, F_GET_SEALS) >= 0;
}

ssize_t read_cached(int fd, void *buffer, size_t size, off_t offset)
{
    struct iovec all = {buffer, size};
    ssize_t n = preadv2(fd, &all, 1, offset, RWF_NOWAIT); /* Linux 4.14 */

    if (n >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR))
        return n;
    if (errno == EOPNOTSUPP && is_tmpfs(fd))
        return pread(fd, buffer, size, offset);
    errno = EAGAIN;
    return -1;
}

bool is_cached(int fd, off_t from, off_t to)
{
    char byte;

    for (off_t ahead = 0; ahead < to - from; ahead += STRIDE)
        if (read_cached(fd, &byte, 1, from + ahead) < 0)
            return false;
    return read_cached(fd, &byte, 1, to - 1) >= 0; /* 0: now shorter; sendfile() will say so */
}
