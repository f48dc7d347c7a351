/*
 * cached.h: opens and reads what the kernel has in memory, and fails with EAGAIN where that would
 * wait for a disk or for another machine. A server tries this first and gives the rest to a thread:
 * so a page in memory does not wait in a queue behind pages that are not. On a file system that
 * cannot tell the answer is always EAGAIN.
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

/* Whether all files are in memory, always: tmpfs. */
bool cached_is_all(int root);

/* As open_below(); -1 with EAGAIN if that might wait. */
int open_cached(int root, const char *path);

/* As pread(); -1 with EAGAIN if that might wait. If only a part is in memory it reads that. */
ssize_t read_cached(int fd, void *buffer, size_t size, off_t offset);

/* Whether sendfile() from `from` to `to` will find its pages in memory. It asks for one page in
 * sixteen, since files come to memory, and leave it, in longer runs. If the guess is wrong
 * sendfile() waits. */
bool is_cached(int fd, off_t from, off_t to);

#endif
