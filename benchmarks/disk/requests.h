/*
 * What the kernel asks of the mounted disk, and the answers. What costs nothing is answered at
 * once, the rest when spindles.c says so.
 *
 * How this keeps out of the measurement's way. Found with libfuse 3.14 and a kernel's 128 KiB of
 * read-ahead:
 * - max_background: at the default 12, the thirteenth read that nobody waits for (read-ahead,
 *   io_submit()) blocks who asks for it.
 * - No automatic invalidation, and attributes that stay valid: else each read() asks for the
 *   attributes first, and sendfile() does not.
 * - No direct_io: it forbids mmap(). Pages are dropped when a file is opened instead, unless the
 *   kernel's cache is to decide (--keep). So with --cache a page that is read again without an
 *   open() comes from the kernel, and the cache here does not see it.
 * - max_read 128 KiB, whatever the kernel would do: it is what READ brings of a cached file anyway.
 */
#ifndef DISK_REQUESTS_H
#define DISK_REQUESTS_H

#include <stdbool.h>

#include "cache.h"
#include "options.h"
#include "spindles.h"

#define MAX_READ (128 * 1024)

struct fuse_lowlevel_ops;

/* One disk a process: libfuse hands each function a pointer, but what the threads call has none. */
struct museum {
    struct options options;
    struct spindles spindles;
    struct cache cache; /* under spindles.lock */
    struct snapshot *snapshots;
};
extern struct museum museum;

extern const struct fuse_lowlevel_ops requests;

/* For spindles_start(): the disk is done with it. */
void answer(struct job *job);

/* What the disk has done until now, as text to be freed; the next phase begins if so wanted. */
char *report_now(bool reset);

/* After the last request: what the kernel has not closed. */
void forget_snapshots(void);

#endif
