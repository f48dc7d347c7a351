/*
 * As the threads of piece.c, but what the page cache has is read at once: preadv2() with RWF_NOWAIT
 * (Linux 4.14) gives EAGAIN instead of waiting for the disk. Not every file system can say so
 * (FUSE cannot): then everything goes to the threads.
 */
#include <sys/uio.h>

#include "12-aio/backend.h"

static struct pool *pool;

static void start(int readers)
{
    pool = pool_start(readers);
}

static void begin(struct piece *p)
{
    struct iovec all = {p->buffer, p->want};

    p->have = preadv2(p->fd, &all, 1, p->from, RWF_NOWAIT);
    if (p->have > 0)
        return;
    p->job.run = piece_read;
    pool_run(pool, &p->job);
}

static enum fetched fetch(struct exchange *x)
{
    return piece_fetch(x, begin);
}

const struct backend backend_nowait = {
    .name = "nowait", .start = start, .fetch = fetch, .send = piece_send, .end = piece_end};
