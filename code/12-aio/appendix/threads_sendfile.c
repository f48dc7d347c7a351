/*
 * The whole of sendfile() in a thread, unless the pages are in memory: nothing is copied, and the
 * loop only hears how much is out. When it hears that the socket was full, that may be old: if
 * room was made meanwhile, the edge that told of it has gone by, and no other will come. Then the
 * thread is sent again.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include "11-sendfile/send_path.h"
#include "12-aio/backend.h"
#include "12-aio/cached.h"
#include "12-aio/job.h"

#define MOST (512 * 1024) /* bytes a job */

struct send_job {
    struct job job; /* first */
    int from, to;
    off_t cached_to; /* the loop may send as far as here */
    off_t offset;
    size_t want;
    ssize_t sent;
    int error;
    bool woken;         /* the loop was told of the socket since the job began */
    long long deadline; /* of the client, when the job began */
};

static struct pool *pool;

static void start(int readers)
{
    pool = pool_start(readers);
}

static void run(struct job *job)
{
    struct send_job *j = (struct send_job *)job;

    do
        j->sent = sendfile(j->to, j->from, &j->offset, j->want);
    while (j->sent < 0 && errno == EINTR);
    j->error = j->sent < 0 ? errno : 0;
}

static enum fetched fetch(struct exchange *x)
{
    struct reply *r = &x->reply;
    struct send_job *j = x->held;

    if (exchange_head_left(x) > 0) /* goes before, with the remark that more follows */
        return FETCHED;
    if (j == NULL && (x->held = j = calloc(1, sizeof *j)) == NULL)
        return FETCH_FAILED;
    if (j->job.state == UNDER_WAY) {
        j->woken = true;
        if (job_is_lost(&j->job)) /* its socket cannot be given up, but its client need not wait */
            shutdown(j->to, SHUT_RDWR);
        return FETCHING;
    }
    if (j->job.state == OVER) {
        j->job.state = IDLE;
        if (j->sent == 0 || (j->sent < 0 && j->error != EAGAIN))
            return FETCH_FAILED;
        if (j->sent < 0) /* it was not the disk that took the time */
            x->conn->deadline = j->deadline;
        if (j->sent < 0 && !j->woken)
            return FETCH_BLOCKED;
        x->sent += j->sent > 0 ? j->sent : 0;
        if (exchange_offset(x) == r->end)
            return FETCHED;
    }
    off_t at = exchange_offset(x), want = r->end - at < MOST ? r->end - at : MOST;
    if (at < j->cached_to || is_cached(r->fd, at, at + want)) {
        if (at >= j->cached_to)
            j->cached_to = at + want;
        return FETCHED;
    }
    j->from = r->fd;
    j->to = x->conn->fd;
    j->offset = at;
    j->want = (size_t)want;
    j->woken = false;
    j->deadline = x->conn->deadline;
    j->job.conn = x->conn;
    j->job.run = run;
    pool_run(pool, &j->job);
    return FETCHING;
}

static ssize_t send_body(int fd, struct exchange *x, size_t most)
{
    struct send_job *j = x->held;
    size_t there = (size_t)(j->cached_to - exchange_offset(x));

    return body_sendfile.send(fd, x, most < there ? most : there);
}

static void end(struct exchange *x)
{
    free(x->held);
}

const struct backend backend_threads_sendfile = {
    .name = "threads-sendfile", .start = start, .fetch = fetch, .send = send_body, .end = end};
