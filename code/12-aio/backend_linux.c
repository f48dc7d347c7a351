/*
 * The kernel's own asynchronous I/O, io_submit(2), without threads. It is asynchronous only with
 * O_DIRECT: nothing stays in the page cache, and a file that a hundred clients want is read a
 * hundred times. glibc has no wrappers for these calls.
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

#define EVENTS_AT_ONCE 64

static aio_context_t context;
static int most_reads; /* in the kernel at a time */
static int room;       /* how many more it may get now */
static struct list waiting = EMPTY_LIST(waiting);

/* Returns whether the kernel has taken it; else errno says why not. */
static bool linux_submit(struct piece *p)
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

/* Submits waiting reads while there is room. A read that the kernel refuses is over, with an error;
 * on EAGAIN it stays in the list, if another read is in the kernel, whose end makes room. */
static void linux_submit_waiting(void)
{
    while (!list_is_empty(&waiting) && room > 0) {
        struct job *job = CONTAINER_OF(waiting.next, struct job, node);
        struct piece *p = (struct piece *)job;
        bool submitted = linux_submit(p);
        if (!submitted && errno == EAGAIN && room < most_reads)
            return; /* the next read that is over makes room */
        list_remove(&job->node);
        if (!submitted) {
            p->have = -errno;
            job_hand_back(job);
        }
    }
}

static void linux_collect(void)
{
    struct io_event events[EVENTS_AT_ONCE];
    struct timespec at_once = {0};
    long n;

    do {
        n = syscall(SYS_io_getevents, context, 0L, (long)EVENTS_AT_ONCE, events, &at_once);
        for (long i = 0; i < n; i++) {
            struct piece *p = (struct piece *)(uintptr_t)events[i].data;
            p->have = (ssize_t)events[i].res;
            room++;
            job_collected(&p->job);
        }
    } while (n == EVENTS_AT_ONCE || (n < 0 && errno == EINTR));
    if (n < 0) /* to go on would mean that no read is ever over */
        die_errno("io_getevents");
    linux_submit_waiting();
}

static void linux_start(int at_a_time)
{
    if (syscall(SYS_io_setup, at_a_time, &context) < 0)
        die(errno == ENOSYS ? EXIT_UNSUPPORTED : EXIT_FAILURE, "io_setup: %s", strerror(errno));
    room = most_reads = at_a_time;
    jobs_collect_by(linux_collect);
}

static bool go_direct(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && ((flags & O_DIRECT) != 0 || fcntl(fd, F_SETFL, flags | O_DIRECT) == 0);
}

static void linux_begin_read(struct piece *p)
{
    p->direct = go_direct(p->fd);
    if (!p->direct) { /* not every file system knows O_DIRECT: the loop waits for this read */
        piece_read(&p->job);
        return;
    }
    job_begins(&p->job);
    list_append(&waiting, &p->job.node);
    linux_submit_waiting();
}

const struct backend backend_linux = {"linux", linux_start, linux_begin_read};
