/*
 * POSIX asynchronous I/O, aio(7): aio_read() and a call back. On Linux it is threads of the C
 * library, at most as many as aio_init() is told, and all reads of one descriptor go to the same
 * thread; the call back is a new thread every time. If none can be had for it, nothing tells us. So
 * it only rings, and the loop asks of each read whether it is over.
 */
#include <errno.h>

#include "12-aio/backend.h"

static struct job *under_way;

static void collect(void)
{
    struct job **place = &under_way, *job;

    while ((job = *place) != NULL) {
        struct piece *p = (struct piece *)job;
        int error = aio_error(&p->control);
        if (error == EINPROGRESS) {
            place = &job->next;
            continue;
        }
        *place = job->next;
        p->have = error == 0 ? aio_return(&p->control) : -error;
        job_collected(job);
    }
}

static void start(int readers)
{
    struct aioinit init = {.aio_threads = readers, .aio_num = 4 * readers, .aio_idle_time = 1};

    aio_init(&init);
    jobs_collect_by(collect);
}

static void is_read(union sigval value)
{
    (void)value;
    jobs_ring();
}

static void begin(struct piece *p)
{
    p->control = (struct aiocb){
        .aio_fildes = p->fd,
        .aio_buf = p->buffer,
        .aio_nbytes = p->want,
        .aio_offset = p->from,
        .aio_sigevent = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = is_read}};
    if (aio_read(&p->control) < 0) {
        p->have = -errno;
        return;
    }
    job_begins(&p->job);
    p->job.next = under_way;
    under_way = &p->job;
}

static enum fetched fetch(struct exchange *x)
{
    return piece_fetch(x, begin);
}

const struct backend backend_posix = {
    .name = "posix", .start = start, .fetch = fetch, .send = piece_send, .end = piece_end};
