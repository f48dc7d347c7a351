/*
 * The kernel's own asynchronous I/O, io_submit(2), and no thread at all; it is asynchronous only
 * for O_DIRECT, so nothing stays in the page cache, and a file that everybody wants is read for
 * everybody. glibc has no wrappers for these calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "12-aio/backend.h"
#include "die.h"

#define TAKEN 64 /* at a time */

static aio_context_t context;
static int most_reads, room; /* reads the kernel may be given at most, and still */
static struct job *waiting, **waiting_end = &waiting;

/* Returns whether the kernel has it now; else errno says why not. */
static bool submit(struct piece *p)
{
    struct iocb control = {.aio_data = (uintptr_t)p,
                           .aio_lio_opcode = IOCB_CMD_PREAD,
                           .aio_fildes = (unsigned)p->fd,
                           .aio_buf = (uintptr_t)p->buffer,
                           .aio_nbytes = p->want,
                           .aio_offset = p->from,
                           .aio_flags = IOCB_FLAG_RESFD,
                           .aio_resfd = (unsigned)jobs_fd()};
    struct iocb *list[] = {&control};

    if (syscall(SYS_io_submit, context, 1L, list) != 1)
        return false;
    room--;
    return true;
}

/* Gives the kernel as many as it may have. Those it refuses have failed. */
static void hand_over(void)
{
    while (waiting != NULL && room > 0) {
        struct piece *p = (struct piece *)waiting;
        bool submitted = submit(p);
        if (!submitted && errno == EAGAIN && room < most_reads)
            return; /* the next one that is over makes room */
        if ((waiting = p->job.next) == NULL)
            waiting_end = &waiting;
        if (!submitted) {
            p->have = -errno;
            job_is_over(&p->job);
        }
    }
}

static void collect(void)
{
    struct io_event events[TAKEN];
    struct timespec at_once = {0};
    long n;

    do {
        n = syscall(SYS_io_getevents, context, 0L, (long)TAKEN, events, &at_once);
        for (long i = 0; i < n; i++) {
            struct piece *p = (struct piece *)(uintptr_t)events[i].data;
            p->have = (ssize_t)events[i].res;
            room++;
            job_collected(&p->job);
        }
    } while (n == TAKEN || (n < 0 && errno == EINTR));
    if (n < 0) /* then no read would ever be over */
        die_errno("io_getevents");
    hand_over();
}

static void start(int at_a_time)
{
    if (syscall(SYS_io_setup, at_a_time, &context) < 0)
        die(errno == ENOSYS ? EXIT_UNSUPPORTED : EXIT_FAILURE, "io_setup: %s", strerror(errno));
    room = most_reads = at_a_time;
    jobs_collect_by(collect);
}

static bool go_direct(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && ((flags & O_DIRECT) != 0 || fcntl(fd, F_SETFL, flags | O_DIRECT) == 0);
}

static void begin(struct piece *p)
{
    p->direct = go_direct(p->fd);
    if (!p->direct) { /* not every file system can: all wait for this read */
        piece_read(&p->job);
        return;
    }
    job_begins(&p->job);
    p->job.next = NULL;
    *waiting_end = &p->job;
    waiting_end = &p->job.next;
    hand_over();
}

static enum fetched fetch(struct exchange *x)
{
    return piece_fetch(x, begin);
}

const struct backend backend_linux = {
    .name = "linux", .start = start, .fetch = fetch, .send = piece_send, .end = piece_end};
