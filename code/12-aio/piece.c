#include "12-aio/backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "12-aio/cached.h"
#include "die.h"

/* Kept for the next replies: each page of new memory costs a page fault. They come from the kernel
 * and not from malloc(), since buffers of two sizes would leave holes in its heap. */
#define SPARE_BUFFERS 16

static char *spare[SPARE_BUFFERS];
static int spares;

static const struct backend *reader;

/* NULL with ENOMEM. */
static char *piece_take_buffer(size_t room)
{
    void *buffer;

    if (room == PIECE_SIZE && spares > 0)
        return spare[--spares];
    buffer = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return buffer != MAP_FAILED ? buffer : NULL;
}

void piece_init(void)
{
    char *first = piece_take_buffer(PIECE_SIZE);

    if (first == NULL)
        die_errno("mmap");
    spare[spares++] = first;
}

void piece_start(const struct backend *backend, int readers)
{
    reader = backend;
    backend->start(readers);
}

static void piece_give_buffer(struct piece *p)
{
    if (p->room == PIECE_SIZE && spares < SPARE_BUFFERS)
        spare[spares++] = p->buffer;
    else
        munmap(p->buffer, p->room);
}

/* The new piece is x->held, and piece_end() frees it. NULL with ENOMEM. */
static struct piece *piece_new(struct exchange *x)
{
    char *buffer = piece_take_buffer(PIECE_SIZE);
    struct piece *p = buffer != NULL ? calloc(1, sizeof *p) : NULL;

    if (p != NULL) {
        p->job.conn = x->conn;
        p->buffer = buffer;
        p->room = PIECE_SIZE;
        x->held = p;
    } else if (buffer != NULL) { /* not to the kernel: it may be the one of piece_init() */
        piece_give_buffer(&(struct piece){.buffer = buffer, .room = PIECE_SIZE});
    }
    return p;
}

/* Does not close p->fd, which is x->reply.fd: backend_end() closes it. */
void piece_end(struct exchange *x)
{
    struct piece *p = x->held;

    if (p == NULL)
        return;
    piece_give_buffer(p);
    free(p);
}

/* After a job that was given up: no reply has this descriptor any more, so it is closed here. */
static void piece_drop(struct job *job)
{
    struct piece *p = (struct piece *)job;

    close(p->fd);
    piece_give_buffer(p);
    free(p);
}

/* How many bytes of the reply, from its offset on, are in the piece. */
static size_t piece_ready(const struct exchange *x, const struct piece *p)
{
    off_t end = p->from + (p->have > 0 ? p->have : 0), at = exchange_offset(x);

    if (at < p->from || at >= end)
        return 0;
    return (size_t)((end < x->reply.end ? end : x->reply.end) - at);
}

/* Gives the piece a buffer of another size, and moves to it what is in the old one from `first` on,
 * as far as there is room. Without memory the piece keeps what it has. */
static void piece_change_buffer(struct piece *p, size_t room, size_t first)
{
    char *buffer = piece_take_buffer(room);

    if (buffer == NULL)
        return;
    size_t have = p->have > (ssize_t)first ? (size_t)p->have - first : 0;
    have = have < room ? have : room;
    memcpy(buffer, p->buffer + first, have);
    piece_give_buffer(p);
    p->buffer = buffer;
    p->room = room;
    p->from += (off_t)first;
    p->have = (ssize_t)have;
}

/* Chooses the part of the file that comes next, in the units of O_DIRECT. */
static void piece_aim(struct piece *p, const struct exchange *x)
{
    if (p->room < PIECE_SIZE)
        piece_change_buffer(p, PIECE_SIZE, p->room); /* a large one again, with no bytes */
    p->fd = x->reply.fd;
    p->wanted = exchange_offset(x);
    p->from = p->wanted - p->wanted % PIECE_ALIGN;
    off_t left = x->reply.end - p->from;
    p->want = left < (off_t)p->room ? ((size_t)left + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN
                                    : p->room;
}

static enum fetched piece_failed(int error)
{
    errno = error;
    return FETCH_FAILED;
}

enum fetched piece_fetch(struct exchange *x)
{
    struct piece *p = x->held;

    if (p == NULL && (p = piece_new(x)) == NULL)
        return FETCH_FAILED;
    if (p->job.state == UNDER_WAY)
        return job_give_up_if_lost(x, piece_drop) ? piece_failed(EAGAIN) : FETCHING;
    if (piece_ready(x, p) > 0)
        return FETCHED;
    if (p->job.state == OVER) { /* its bytes are all sent, or it has brought none */
        p->job.state = IDLE;
        if (p->have < 0 || exchange_offset(x) == p->wanted) /* nothing could be sent of it */
            return piece_failed(p->have < 0 ? (int)-p->have : EIO);
    }
    piece_aim(p, x);
    p->have = p->direct ? 0 : read_cached(p->fd, p->buffer, p->want, p->from);
    if (piece_ready(x, p) > 0)
        return FETCHED;
    if (jobs_refused())
        return piece_failed(EAGAIN);
    p->have = 0;
    reader->begin_read(p);
    if (p->job.state == UNDER_WAY)
        return FETCHING;
    return piece_ready(x, p) > 0 ? FETCHED : piece_failed(p->have < 0 ? (int)-p->have : EIO);
}

ssize_t piece_send(int fd, struct exchange *x, size_t most)
{
    struct piece *p = x->held;
    size_t n = piece_ready(x, p), at = (size_t)(exchange_offset(x) - p->from);

    return send(fd, p->buffer + at, n < most ? n : most, x->reply.may_close ? FIN_FOLLOWS : 0);
}

/* Keeps at most PIECE_KEPT unsent bytes and gives the large buffer back. The rest is read again:
 * from the page cache, with O_DIRECT from the disk. Called before the head is sent, too, if the
 * socket is still full of the reply before. errno stays as it is. */
void piece_blocked(struct exchange *x)
{
    struct piece *p = x->held;
    size_t at = (size_t)(exchange_offset(x) - p->from);
    int saved = errno;

    if (p->room > PIECE_KEPT)
        piece_change_buffer(p, PIECE_KEPT, at - at % PIECE_ALIGN);
    errno = saved;
}

void piece_read(struct job *job)
{
    struct piece *p = (struct piece *)job;

    do
        p->have = pread(p->fd, p->buffer, p->want, p->from);
    while (p->have < 0 && errno == EINTR);
    p->have = p->have < 0 ? -errno : p->have;
}

/* -d threads: a pool of threads reads. */
static struct pool *pool;

static void threads_start(int readers)
{
    pool = pool_start(readers);
}

static void threads_begin_read(struct piece *p)
{
    p->job.run = piece_read;
    pool_run(pool, &p->job);
}

const struct backend backend_threads = {"threads", threads_start, threads_begin_read};
