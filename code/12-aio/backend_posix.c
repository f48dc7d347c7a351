/*
 * POSIX asynchronous I/O, aio(7): aio_read() and a call back. On Linux it is threads of the C
 * library, at most as many as aio_init() is told; all reads of one descriptor go to the same
 * thread, and each call back is a new thread. If that thread cannot be created, the call back
 * is never called. So it only wakes the loop, which asks aio_error() of every read; job_is_lost()
 * wakes the loop, too.
 */
#include <errno.h>

#include "12-aio/backend.h"

static struct list under_way = EMPTY_LIST(under_way);

static void posix_collect(void)
{
    struct list *node, *next;

    for (node = under_way.next; node != &under_way; node = next) {
        struct job *job = CONTAINER_OF(node, struct job, node);
        struct piece *p = (struct piece *)job;
        int error = aio_error(&p->control);
        next = node->next;
        if (error == EINPROGRESS)
            continue;
        list_remove(node);
        p->have = error == 0 ? aio_return(&p->control) : -error;
        job_collected(job);
    }
}

static void posix_start(int readers)
{
    struct aioinit init = {.aio_threads = readers, .aio_num = 4 * readers, .aio_idle_time = 1};

    aio_init(&init);
    jobs_collect_by(posix_collect);
}

static void posix_wake_loop(union sigval value)
{
    (void)value;
    jobs_ring();
}

static void posix_begin_read(struct piece *p)
{
    p->control = (struct aiocb){
        .aio_fildes = p->fd,
        .aio_buf = p->buffer,
        .aio_nbytes = p->want,
        .aio_offset = p->from,
        .aio_sigevent = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = posix_wake_loop}};
    if (aio_read(&p->control) < 0) {
        p->have = -errno;
        return;
    }
    job_begins(&p->job);
    list_append(&under_way, &p->job.node);
}

const struct backend backend_posix = {"posix", posix_start, posix_begin_read};
