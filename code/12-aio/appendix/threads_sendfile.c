/*
 * -d threads-sendfile: sendfile() in a thread, unless the pages are in memory. Nothing is copied,
 * and the loop only hears how much was sent. When it hears that the socket was full, that may be
 * out of date: if the client read meanwhile, the edge that said so has gone by, and no other will
 * come. Then the job begins again.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include "11-sendfile/send_path.h"
#include "12-aio/appendix/appendix.h"
#include "12-aio/cached.h"
#include "12-aio/job.h"

#define SEND_MOST (512 * 1024) /* bytes of a job */

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

void threads_sendfile_start(int readers)
{
    pool = pool_start(readers);
}

static void sendfile_run(struct job *job)
{
    struct send_job *j = (struct send_job *)job;

    do
        j->sent = sendfile(j->to, j->from, &j->offset, j->want);
    while (j->sent < 0 && errno == EINTR);
    j->error = j->sent < 0 ? errno : 0;
}

static void sendfile_begin(struct exchange *x, off_t at, off_t want)
{
    struct send_job *j = x->held;

    j->from = x->reply.fd;
    j->to = x->conn->fd;
    j->offset = at;
    j->want = (size_t)want;
    j->woken = false;
    j->deadline = x->conn->deadline;
    j->job.conn = x->conn;
    j->job.run = sendfile_run;
    pool_run(pool, &j->job);
}

static enum fetched sendfile_fetch(struct exchange *x)
{
    struct reply *r = &x->reply;
    struct send_job *j = x->held;

    if (exchange_head_left(x) > 0) /* goes before, with MSG_MORE */
        return FETCHED;
    if (j == NULL && (x->held = j = calloc(1, sizeof *j)) == NULL)
        return FETCH_FAILED;
    if (j->job.state == UNDER_WAY) {
        j->woken = true;
        if (job_is_lost(&j->job)) /* the job needs the socket: it cannot be given up, only shut */
            shutdown(j->to, SHUT_RDWR);
        return FETCHING;
    }
    if (j->job.state == OVER && j->error == EAGAIN) /* it was not the disk that took the time */
        x->conn->deadline = j->deadline;
    if (j->job.state == OVER && (j->error != EAGAIN || !j->woken))
        return FETCHED; /* sendfile_send() has the result */
    j->job.state = IDLE;
    off_t at = exchange_offset(x), want = r->end - at < SEND_MOST ? r->end - at : SEND_MOST;
    if (at < j->cached_to || is_cached(r->fd, at, at + want)) {
        if (at >= j->cached_to)
            j->cached_to = at + want;
        return FETCHED;
    }
    sendfile_begin(x, at, want);
    return FETCHING;
}

/* What the thread has sent is sent; else the loop sends what is in memory. */
static ssize_t sendfile_send(int fd, struct exchange *x, size_t most)
{
    struct send_job *j = x->held;

    if (j->job.state == OVER) {
        j->job.state = IDLE;
        errno = j->error;
        return j->sent;
    }
    size_t there = (size_t)(j->cached_to - exchange_offset(x));
    return body_sendfile.send(fd, x, most < there ? most : there);
}

static void sendfile_end(struct exchange *x)
{
    free(x->held);
}

const struct body_source source_threads_sendfile = {sendfile_fetch, sendfile_send, sendfile_end,
                                                    NULL};
