/*
 * POSIX asynchronous I/O, aio(7): aio_read() and a call back. On Linux it is threads of the C
 * library, at most as many as aio_init() is told, and all reads of one descriptor go to the same
 * thread; the call back is a new thread every time. If none can be had, glibc says nothing, and the
 * read is never over here: its connection then stays until the server ends.
 */
#include "12-aio/backend.h"

static void start(int readers)
{
    struct aioinit init = {.aio_threads = readers, .aio_num = 4 * readers, .aio_idle_time = 1};

    aio_init(&init);
}

static void is_read(union sigval value)
{
    struct piece *p = value.sival_ptr;

    p->have = aio_return(&p->control);
    job_is_over(&p->job);
}

static void begin(struct piece *p)
{
    p->control = (struct aiocb){.aio_fildes = p->fd,
                                .aio_buf = p->buffer,
                                .aio_nbytes = p->want,
                                .aio_offset = p->from,
                                .aio_sigevent = {.sigev_notify = SIGEV_THREAD,
                                                 .sigev_notify_function = is_read,
                                                 .sigev_value.sival_ptr = p}};
    p->job.state = UNDER_WAY;
    if (aio_read(&p->control) == 0)
        return;
    p->job.state = IDLE; /* no room for another: all wait for this one */
    piece_read(&p->job);
}

static enum fetched fetch(struct exchange *x)
{
    return piece_fetch(x, begin);
}

const struct backend backend_posix = {
    .name = "posix", .start = start, .fetch = fetch, .send = piece_send, .end = piece_end};
