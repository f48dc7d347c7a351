/*
 * short_reads.c: preloaded, it lets pread() read 10 000 bytes at most, and not all that was asked
 * for, as a file system may whenever it likes.
 */
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define MOST 10000

static ssize_t read_less(int fd, void *buffer, size_t size, off_t offset)
{
    return syscall(SYS_pread64, fd, buffer, size < MOST ? size : MOST, offset);
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
    return read_less(fd, buffer, size, offset);
}

ssize_t pread64(int fd, void *buffer, size_t size, off_t offset)
{
    return read_less(fd, buffer, size, offset);
}
