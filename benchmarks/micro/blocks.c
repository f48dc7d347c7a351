#include "blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "die.h"

#define WRITE_OUT (SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER)

static void advise(int fd, int advice)
{
    int error = posix_fadvise(fd, 0, 0, advice);
    if (error != 0)
        die(EXIT_FAILURE, "posix_fadvise: %s", strerror(error));
}

off_t block_offset(size_t i)
{
    return (off_t)i * BLOCK_SPACING;
}

/* The file is ours: nothing of it may be left. */
static _Noreturn void die_without(const char *path, const char *call)
{
    int error = errno;
    unlink(path);
    errno = error;
    die_errno("%s %s", call, path);
}

void blocks_make(const char *path, size_t count)
{
    char block[BLOCK_BYTES];
    memset(block, 'x', sizeof block);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd == -1)
        die_errno("open %s", path);
    for (size_t i = 0; i < count; i++)
        if (pwrite(fd, block, sizeof block, block_offset(i)) != (ssize_t)sizeof block)
            die_without(path, "write");
    /* Not fsync(): what else the disk has to write is of no interest, and may take long. */
    if (sync_file_range(fd, 0, 0, WRITE_OUT) == -1)
        die_without(path, "sync_file_range");
    if (close(fd) == -1)
        die_without(path, "close");
}

int blocks_open(const char *path, int flags)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (fd == -1)
        die_errno("open %s", path);
    advise(fd, POSIX_FADV_RANDOM);
    return fd;
}

void blocks_forget(int fd)
{
    advise(fd, POSIX_FADV_DONTNEED);
}

void block_read(int fd, void *buffer, size_t i)
{
    ssize_t n = pread(fd, buffer, BLOCK_BYTES, block_offset(i));
    if (n == -1)
        die_errno("pread");
    if (n != BLOCK_BYTES)
        die(EXIT_FAILURE, "pread: %ld bytes of a block", (long)n);
}
