/*
 * Sends a reply: head and body by one call where the body is in memory, else the head with MSG_MORE
 * and the file by sendfile(). What is not in the page cache is read by a thread first.
 */
#include "15-slashdot/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "12-aio/cached.h"
#include "clock.h"

#define READ_MOST  (512 * 1024) /* by a thread at a time */
#define READ_CHUNK (16 * 1024)
#define COPIED     4096 /* head and body together */

struct pool *disk_threads;

static struct transfer *spare; /* every reply needs one: one is kept for the next */

bool transfer_begin(struct exchange *x, struct file *f)
{
    struct transfer *t = spare != NULL ? spare : malloc(sizeof *t);

    if (t == NULL)
        return false;
    spare = NULL;
    *t = (struct transfer){.file = f, .job.conn = x->conn};
    x->held = t;
    return true;
}

void transfer_end(struct exchange *x)
{
    struct transfer *t = x->held;

    if (t == NULL)
        return;
    file_release(t->file);
    if (spare == NULL)
        spare = t;
    else
        free(t);
}

/* In a thread: the bytes come to the page cache, and sendfile() finds them there. */
static void transfer_read_ahead(struct job *job)
{
    struct transfer *t = (struct transfer *)job;
    char junk[READ_CHUNK]; /* _Thread_local would take memory for all threads at their start */

    /* It only tells the kernel to begin; pread() waits for the bytes. */
    (void)!readahead(t->file->fd, t->from, (size_t)(t->to - t->from));
    for (off_t at = t->from; at < t->to;) {
        size_t left = (size_t)(t->to - at);
        ssize_t n = pread(t->file->fd, junk, left < sizeof junk ? left : sizeof junk, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            t->error = errno;
        if (n <= 0)
            return;
        at += n;
    }
}

static void transfer_drop(struct job *job)
{
    struct transfer *t = (struct transfer *)job;

    file_release(t->file);
    free(t);
}

/* How many bytes from `at` on are taken to be in memory: for FRESH_MS after a thread has read them,
 * or after is_cached() has said so. */
static off_t transfer_in_memory(struct transfer *t, off_t at, off_t most, long long now)
{
    struct file *f = t->file;

    if (t->job.state == OVER)
        t->trusted_till = now + FRESH_MS;
    t->job.state = IDLE;
    if (now < t->trusted_till && at >= t->from && at < t->to)
        return t->to - at < most ? t->to - at : most;
    if (now - f->resident_at >= FRESH_MS) { /* ask again */
        f->resident_at = now;
        f->resident_to = 0;
    }
    return at + most <= f->resident_to ? most : 0;
}

/* How many bytes can be sent now without waiting for the disk. 0: a thread has begun to read, and
 * *t must not be freed before it is done. -1: the file cannot be read, t->error says why. */
static ssize_t transfer_ready(struct transfer *t, const struct exchange *x, long budget)
{
    struct file *f = t->file;
    off_t at = exchange_offset(x), left = x->reply.end - at, most = left < budget ? left : budget;
    off_t here = transfer_in_memory(t, at, most, now_ms());

    if (t->error != 0)
        return -1;
    if (here > 0)
        return (ssize_t)here;
    if (is_cached(f->fd, at, at + most)) {
        if (at <= f->resident_to)
            f->resident_to = at + most;
        return (ssize_t)most;
    }
    if (jobs_refused()) {
        t->error = EAGAIN;
        return -1;
    }
    t->from = at;
    t->to = at + (left < READ_MOST ? left : READ_MOST);
    t->job.run = transfer_read_ahead;
    pool_run(disk_threads, &t->job);
    return 0;
}

/*
 * Head and body from memory in one call. Up to COPIED bytes are copied together for send(2); for
 * more sendmsg(2) takes them from where they are, at the price of three structures that the kernel
 * has to read.
 */
static ssize_t send_memory(int fd, struct exchange *x, const char *body)
{
    static char joined[COPIED];
    const struct reply *r = &x->reply;
    off_t at = exchange_offset(x);
    struct iovec parts[] = {
        {(char *)r->head + r->head_len - exchange_head_left(x), exchange_head_left(x)},
        {(char *)body + (body != NULL ? at : 0), (size_t)(r->end - at)},
    };
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    int flags = r->may_close ? FIN_FOLLOWS : 0;

    if (parts[0].iov_len + parts[1].iov_len > sizeof joined)
        return sendmsg(fd, &message, flags);
    memcpy(joined, parts[0].iov_base, parts[0].iov_len);
    if (body != NULL)
        memcpy(joined + parts[0].iov_len, parts[1].iov_base, parts[1].iov_len);
    return send(fd, joined, parts[0].iov_len + parts[1].iov_len, flags);
}

enum sent transfer_send(int fd, struct exchange *x, long *budget)
{
    struct reply *r = &x->reply;
    struct transfer *t = x->held;

    if (t != NULL && t->job.state == UNDER_WAY) {
        if (!job_give_up_if_lost(x, transfer_drop))
            return SENT_WAITS;
        return job_reply_error(x, EAGAIN) ? SENT_BUDGET : SENT_FAILED;
    }
    while (exchange_head_left(x) > 0 || exchange_offset(x) < r->end) {
        bool from_file = r->fd >= 0 && exchange_offset(x) < r->end;
        size_t head = exchange_head_left(x);
        ssize_t n, most = 0;
        if (*budget <= 0)
            return SENT_BUDGET;
        if (from_file && (most = transfer_ready(t, x, *budget)) == 0)
            return SENT_WAITS;
        if (most < 0)
            return job_reply_error(x, t->error) ? SENT_BUDGET : SENT_FAILED;
        if (!from_file)
            n = send_memory(fd, x, t != NULL ? t->file->body : NULL);
        else if (head > 0)
            n = send(fd, r->head + x->sent, head, MSG_MORE);
        else
            n = sendfile(fd, r->fd, &(off_t){exchange_offset(x)}, (size_t)most);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? SENT_BLOCKED : SENT_FAILED;
        if (n == 0) /* shorter than promised: only the end of the connection can say so */
            return SENT_FAILED;
        x->sent += n;
        *budget -= n;
    }
    return SENT_ALL;
}
