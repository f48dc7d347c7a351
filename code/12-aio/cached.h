/*
 * cached.h: asks the kernel for what it has in its memory, and is told EAGAIN where it would have
 * to wait for a disk or for another machine. A server tries this first, and hands over what is
 * left: so a page that is in memory does not stand in a queue behind those that are not.
 *
 * Not every file system can tell. Where one cannot, the answer is EAGAIN too, always.
 */
#ifndef CACHED_H
#define CACHED_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * How to open a name below `root` without waiting, for openat2(2) (RESOLVE_CACHED, Linux 5.12);
 * NULL where open() itself may wait although the kernel knows the name: FUSE and network file
 * systems send a message. Other file systems that are mounted below `root` are left out (EXDEV).
 */
struct open_how;
const struct open_how *cached_how(int root);

/* Whether all that it finds is in memory: tmpfs has no disk, and cannot tell either. */
bool cached_is_all(int root);

/* As open_below(); -1 with EAGAIN if that might wait. */
int open_cached(int root, const char *path);

/* As pread(); -1 with EAGAIN if that might wait. A part that is in memory is read alone. */
ssize_t read_cached(int fd, void *buffer, size_t size, off_t offset);

/* Whether sendfile() from `from` to `to` will find its pages in memory. Not every page is asked
 * for: files come to memory, and leave it, in longer runs. Where the guess is wrong the caller
 * waits. */
bool is_cached(int fd, off_t from, off_t to);

#endif
