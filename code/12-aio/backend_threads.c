/* A pool of threads reads; the loop sends from memory. */
#include "12-aio/backend.h"
#include "12-aio/piece.h"

static struct pool *pool;

static void start(int readers)
{
    pool = pool_start(readers);
}

static void begin(struct piece *p)
{
    p->job.run = piece_read;
    pool_run(pool, &p->job);
}

static enum fetched fetch(struct sending *s)
{
    return piece_fetch(s, begin);
}

const struct backend backend_threads = {
    .name = "threads", .start = start, .fetch = fetch, .send = piece_send, .end = piece_end};
