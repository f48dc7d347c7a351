/*
 * Sends a reply: head and body by one call where the body is in memory, else the head with the
 * remark that more follows, and the file by sendfile(). What the kernel would have to fetch from
 * the disk is fetched by a thread first.
 */
#include "15-slashdot/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"

#define STRIDE    (64 * 1024)  /* between the pages that are looked at */
#define READ_MOST (512 * 1024) /* by a thread at a time */
#define CHUNK     (16 * 1024)
#define COPIED    4096 /* head and body together */

struct pool *disk_threads;

static struct transfer *spare; /* one is needed for every reply */

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

/*
 * Are the pages in memory? Reading a byte with RWF_NOWAIT (preadv2(2), Linux 4.14) tells, without
 * waiting and without mapping anything. Not every page is asked about: files come to memory, and
 * leave it, in longer runs. Where the guess is wrong the loop waits for the disk, as 11-sendfile
 * always does. tmpfs cannot answer, but has no disk; FUSE cannot either, and has one.
 */
static bool page_is_resident(int fd, off_t at)
{
    struct statfs fs;
    char byte;
    struct iovec one = {&byte, 1};

    if (preadv2(fd, &one, 1, at, RWF_NOWAIT) >= 0) /* 0: shorter now; sendfile() will say so */
        return true;
    return errno == EOPNOTSUPP && fstatfs(fd, &fs) == 0 &&
           (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

static bool is_resident(int fd, off_t from, off_t to)
{
    for (off_t at = from; at < to; at += STRIDE)
        if (!page_is_resident(fd, at))
            return false;
    return page_is_resident(fd, to - 1);
}

/* In a thread: what is read comes to the page cache, and is sent from there. */
static void fetch(struct job *job)
{
    struct transfer *t = (struct transfer *)job;
    char junk[CHUNK]; /* _Thread_local, all threads would have theirs in memory from the start */

    (void)!readahead(t->file->fd, t->from, (size_t)(t->to - t->from)); /* advice only */
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

/* How much of the file may be sent now without waiting for the disk; 0 if a thread has to read
 * first, which has begun. */
static size_t ready(struct transfer *t, const struct reply *r, long budget)
{
    struct file *f = t->file;
    off_t left = r->end - r->offset, most = left < budget ? left : budget;
    long long now = now_ms();

    if (t->job.state == OVER && r->offset >= t->from && r->offset < t->to)
        return (size_t)(t->to - r->offset < most ? t->to - r->offset : most);
    if (now - f->resident_at >= FRESH_MS) { /* to be seen anew */
        f->resident_at = now;
        f->resident_to = 0;
    }
    if (r->offset + most <= f->resident_to)
        return (size_t)most;
    if (is_resident(f->fd, r->offset, r->offset + most)) {
        if (r->offset <= f->resident_to)
            f->resident_to = r->offset + most;
        return (size_t)most;
    }
    t->from = r->offset;
    t->to = r->offset + (left < READ_MOST ? left : READ_MOST);
    t->job.run = fetch;
    pool_run(disk_threads, &t->job);
    return 0;
}

/*
 * What is in memory goes by one call: a little is copied together for send(2), more is taken from
 * where it is by sendmsg(2), which has the kernel read three structures. (With 1 kB no difference
 * was seen.) FIN_FOLLOWS: linger.h.
 */
static ssize_t send_memory(int fd, struct exchange *x, const char *body)
{
    static char joined[COPIED];
    const struct reply *r = &x->reply;
    struct iovec parts[] = {
        {(char *)r->head + x->head_sent, r->head_len - x->head_sent},
        {(char *)body + (body != NULL ? r->offset : 0), (size_t)(r->end - r->offset)},
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

    if (t != NULL && t->job.state == UNDER_WAY)
        return SENT_WAITS;
    while (x->head_sent < r->head_len || r->offset < r->end) {
        size_t head = r->head_len - x->head_sent, most;
        ssize_t n;
        if (*budget <= 0)
            return SENT_BUDGET;
        if (r->offset == r->end || r->fd < 0)
            n = send_memory(fd, x, t != NULL ? t->file->body : NULL);
        else if (head > 0)
            n = send(fd, r->head + x->head_sent, head, MSG_MORE);
        else if (t->error != 0)
            return SENT_FAILED;
        else if ((most = ready(t, r, *budget)) > 0)
            n = sendfile(fd, r->fd, &(off_t){r->offset}, most);
        else
            return SENT_WAITS;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? SENT_BLOCKED : SENT_FAILED;
        if (n == 0) /* the promised length cannot be kept: only the connection's end says so */
            return SENT_FAILED;
        size_t of_head = (size_t)n < head ? (size_t)n : head;
        x->head_sent += of_head;
        r->offset += n - (ssize_t)of_head;
        *budget -= n;
    }
    return SENT_ALL;
}
