/*
 * Perlbal's way: a thread has the kernel read ahead into the page cache, then the loop's
 * sendfile() finds the pages there. readahead(2) only begins that, so the thread also reads a
 * byte of every page and waits. If a page is thrown out in between, the loop waits for it after
 * all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "11-sendfile/send_path.h"
#include "12-aio/appendix/appendix.h"
#include "12-aio/cached.h"
#include "12-aio/job.h"

#define AHEAD (256 * 1024) /* bytes ahead */
#define PAGE  4096         /* no smaller one is known to Linux */

struct ahead {
    struct job job; /* first */
    int fd;
    off_t from, until;
    int error;
};

static struct pool *pool;

void readahead_start(int readers)
{
    pool = pool_start(readers);
}

static void readahead_run(struct job *job)
{
    struct ahead *a = (struct ahead *)job;
    char byte;

    /* If readahead() fails, the reads below do its work. */
    readahead(a->fd, a->from, (size_t)(a->until - a->from));
    for (off_t at = a->from; at < a->until; at += PAGE - at % PAGE) {
        ssize_t n = pread(a->fd, &byte, 1, at);
        if (n == 0 || (n < 0 && errno != EINTR))
            a->error = n == 0 ? EIO : errno;
        if (a->error != 0)
            return;
    }
}

static void readahead_drop(struct job *job)
{
    close(((struct ahead *)job)->fd);
    free(job);
}

static enum fetched readahead_failed(int error)
{
    errno = error;
    return FETCH_FAILED;
}

static enum fetched readahead_fetch(struct exchange *x)
{
    struct reply *r = &x->reply;
    struct ahead *a = x->held;

    if (a == NULL && (x->held = a = calloc(1, sizeof *a)) == NULL)
        return FETCH_FAILED;
    if (a->job.state == UNDER_WAY)
        return job_give_up_if_lost(x, readahead_drop) ? readahead_failed(EAGAIN) : FETCHING;
    if (a->error != 0)
        return readahead_failed(a->error);
    if (exchange_offset(x) >= a->from && exchange_offset(x) < a->until)
        return FETCHED;
    a->fd = r->fd;
    a->from = exchange_offset(x);
    a->until = r->end - exchange_offset(x) < AHEAD ? r->end : exchange_offset(x) + AHEAD;
    if (is_cached(a->fd, a->from, a->until))
        return FETCHED;
    if (jobs_refused())
        return readahead_failed(EAGAIN);
    a->job.conn = x->conn;
    a->job.run = readahead_run;
    pool_run(pool, &a->job);
    return FETCHING;
}

static ssize_t readahead_send(int fd, struct exchange *x, size_t most)
{
    struct ahead *a = x->held;
    size_t there = (size_t)(a->until - exchange_offset(x));

    return body_sendfile.send(fd, x, most < there ? most : there);
}

static void readahead_end(struct exchange *x)
{
    free(x->held);
}

const struct body_source source_readahead = {readahead_fetch, readahead_send, readahead_end, NULL};
