/*
 * cached.h: opens and reads what the kernel has in memory, and fails with EAGAIN where that would
 * wait for a disk or for another machine. A server tries this first and gives the rest to a thread:
 * so a page in memory does not wait in a queue behind pages that are not. On a file system that
 * cannot tell, the answer is always EAGAIN.
 */
#ifndef CACHED_H
#define CACHED_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Options of openat2(2) to open a name below `root` from memory only (RESOLVE_CACHED, Linux 5.12).
 * NULL unless root is on a file system that cached.c lists: others may wait all the same, such as
 * FUSE and network file systems, which send a message. Mounts below `root` are left out (EXDEV).
 */
struct open_how;
const struct open_how *cached_how(int root);

/* Whether root is tmpfs, which has no disk. (Its pages may be in swap: then the loop waits.) */
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
