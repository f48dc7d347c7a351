/* files.c: the folder that is served: /0.txt to /12.txt, /dir/ with an index.html, /secret, which
 * must not be read, and nothing else. */
#include "sim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE  4096
#define APART 4099 /* the bytes of a file begin so far behind those of the one before */

const size_t file_sizes[FILES] = {0,     1,     12,    600,    4000,   14000,  16384,
                                  16385, 40000, 65536, 200000, 500000, 1300000};

static unsigned char content[1300000 + FILES * APART];

void files_make(void)
{
    uint32_t x = 1;

    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (unsigned char)((x = x * 1664525 + 1013904223) >> 24);
}

const unsigned char *file_bytes(int file)
{
    return content + file * APART;
}

static int open_path(const char *path)
{
    char *end;
    long file = strtol(path, &end, 10);

    if (end != path && strcmp(end, ".txt") == 0 && file >= 0 && file < FILES) {
        int fd = new_fd(A_FILE);
        if (fd >= 0)
            fds[fd].file = (int)file;
        return fd;
    }
    if (strcmp(path, "dir/index.html") == 0) {
        int fd = new_fd(A_FILE);
        if (fd >= 0)
            fds[fd].file = 3;
        return fd;
    }
    if (strcmp(path, "dir") == 0)
        return new_fd(A_FOLDER);
    errno = strcmp(path, "secret") == 0 ? EACCES : ENOENT;
    return -1;
}

WRAP(int, open_below, int root, const char *path)
{
    get_fd(root, "open_below()");
    step();
    int fd = open_path(path);
    TRACE("open(%s) = %d%s%s", path, fd, fd < 0 ? " " : "", fd < 0 ? strerror(errno) : "");
    return fd;
}

int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    (void)flags;
    if (strncmp(path, "/proc/", 6) == 0) {
        errno = ENOENT;
        return -1;
    }
    return new_fd(OTHER);
}

int __real_fstat64(int fd, struct stat *st);
WRAP(int, fstat64, int fd, struct stat *st)
{
    if (fd < 3)
        return __real_fstat64(fd, st);
    struct fd *f = get_fd(fd, "fstat()");
    *st = (struct stat){.st_dev = 1, .st_ino = (ino_t)f->file + 1, .st_nlink = 1};
    st->st_mode = f->kind == A_FILE ? S_IFREG | 0644 : S_IFDIR | 0755;
    st->st_size = f->kind == A_FILE ? (off_t)file_sizes[f->file] : 0;
    st->st_mtim.tv_sec = st->st_ctim.tv_sec = 1600000000;
    return 0;
}

WRAP(ssize_t, pread64, int fd, void *bytes, size_t len, off_t at)
{
    struct fd *f = get_fd(fd, "pread()");
    off_t left = f->kind == A_FILE ? (off_t)file_sizes[f->file] - at : 0;

    step();
    if (f->kind != A_FILE) {
        errno = EISDIR;
        return -1;
    }
    size_t n = left < (off_t)len ? (size_t)(left > 0 ? left : 0) : len;
    if (n > PAGE && one_in(20)) /* it reads whole pages */
        n = PAGE + pick((unsigned)(n - PAGE));
    memcpy(bytes, file_bytes(f->file) + at, n);
    return (ssize_t)n;
}

WRAP(ssize_t, readahead, int fd, off_t at, size_t len)
{
    (void)at, (void)len;
    get_fd(fd, "readahead()");
    return 0;
}
