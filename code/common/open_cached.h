/*
 * open_cached.h: open_below() that never waits for a disk.
 */
#ifndef OPEN_CACHED_H
#define OPEN_CACHED_H

/*
 * As open_below() of common/open_below.h, but -1 with EAGAIN where the kernel does not have all of
 * the path in its memory: openat2(2), RESOLVE_CACHED, Linux 5.12. EAGAIN too where there is no such
 * thing, so that who can wait does it.
 */
int open_cached(int root, const char *path);

#endif
