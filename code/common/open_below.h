/*
 * open_below.h: opens a file below a folder and never one outside, whatever the path says.
 *
 * Cleaning the path and then opening it is not enough: a symbolic link may lead out, and may be put
 * in place between the check and the open. So the kernel has to refuse. One file per mechanism,
 * chosen by the Makefile:
 * - open_below_openat2.c: Linux 5.6, openat2(2) with RESOLVE_BENEATH; links that stay below are
 *   followed
 * - open_below_resolve_beneath.c: FreeBSD 13, O_RESOLVE_BENEATH; the same
 * - open_below_walk.c: everywhere, one component after the other, none of them a link
 */
#ifndef OPEN_BELOW_H
#define OPEN_BELOW_H

/*
 * Opens `path` (relative, "a/b.html") below the folder `root` for reading, with O_NONBLOCK so that
 * a FIFO does not hold the server up; a disk may. Returns a descriptor, of whatever kind of file is
 * there, which the caller closes, or -1 with errno:
 *     EXDEV   the path leads out of root
 *     ELOOP   ... or over a link that this mechanism does not follow
 *     others  as open(2)
 */
int open_below(int root, const char *path);

/* The portable mechanism under its own name: what openat2's file falls back to on an old or
 * restricted kernel. */
int open_below_walk(int root, const char *path);

#endif
