#include "12-aio/backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "12-aio/cached.h"

/* Kept for the next replies: new memory costs a page fault a page. From the kernel and not from
 * malloc(), whose holes between buffers of two sizes nobody would use. */
#define SPARE_BUFFERS 16

static char *spare[SPARE_BUFFERS];
static int spares;

static char *take_buffer(size_t room)
{
    void *buffer;

    if (room == PIECE_SIZE && spares > 0)
        return spare[--spares];
    buffer = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return buffer != MAP_FAILED ? buffer : NULL;
}

static void give_buffer(struct piece *p)
{
    if (p->room == PIECE_SIZE && spares < SPARE_BUFFERS)
        spare[spares++] = p->buffer;
    else
        munmap(p->buffer, p->room);
}

static struct piece *new_piece(struct exchange *x)
{
    struct piece *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->job.conn = x->conn;
    p->room = PIECE_SIZE;
    p->buffer = take_buffer(p->room);
    if (p->buffer == NULL) {
        free(p);
        errno = ENOMEM;
        return NULL;
    }
    x->held = p;
    return p;
}

static void drop_piece(struct job *job)
{
    struct piece *p = (struct piece *)job;

    close(p->fd);
    give_buffer(p);
    free(p);
}

void piece_end(struct exchange *x)
{
    struct piece *p = x->held;

    if (p == NULL)
        return;
    give_buffer(p);
    free(p);
}

/* How many bytes of the reply the piece has from its offset on. */
static size_t ready(const struct exchange *x, const struct piece *p)
{
    off_t end = p->from + (p->have > 0 ? p->have : 0), at = exchange_offset(x);

    if (at < p->from || at >= end)
        return 0;
    return (size_t)((end < x->reply.end ? end : x->reply.end) - at);
}

/* Puts another buffer in the place of the piece's, which may have bytes that are to be sent: those
 * from `first` on, as many as there is room for. */
static void change_buffer(struct piece *p, size_t room, size_t first)
{
    char *buffer = take_buffer(room);

    if (buffer == NULL)
        return; /* then it keeps what it has */
    size_t have = p->have > (ssize_t)first ? (size_t)p->have - first : 0;
    have = have < room ? have : room;
    memcpy(buffer, p->buffer + first, have);
    give_buffer(p);
    p->buffer = buffer;
    p->room = room;
    p->from += (off_t)first;
    p->have = (ssize_t)have;
}

static enum fetched failed(int error)
{
    errno = error;
    return FETCH_FAILED;
}

/* Which part of the file comes next, in the units of O_DIRECT. */
static void aim(struct piece *p, const struct exchange *x)
{
    const struct reply *r = &x->reply;
    off_t left;

    if (p->room < PIECE_SIZE)
        change_buffer(p, PIECE_SIZE, p->room);
    p->fd = r->fd;
    p->wanted = exchange_offset(x);
    p->from = p->wanted - p->wanted % PIECE_ALIGN;
    left = r->end - p->from;
    p->want = left < (off_t)p->room ? ((size_t)left + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN
                                    : p->room;
}

enum fetched piece_fetch(struct exchange *x, void (*begin)(struct piece *p))
{
    struct piece *p = x->held;

    if (p == NULL && (p = new_piece(x)) == NULL)
        return FETCH_FAILED;
    if (p->job.state == UNDER_WAY)
        return job_is_lost(&p->job) ? backend_give_up(x, drop_piece) : FETCHING;
    if (ready(x, p) > 0)
        return FETCHED;
    if (p->job.state == OVER) {
        p->job.state = IDLE;
        if (p->have < 0 || exchange_offset(x) == p->wanted)
            return failed(p->have < 0 ? (int)-p->have : EIO); /* EIO: shorter than promised */
    }
    aim(p, x);
    p->have = p->direct ? 0 : read_cached(p->fd, p->buffer, p->want, p->from);
    if (ready(x, p) > 0)
        return FETCHED;
    if (jobs_refused())
        return failed(EAGAIN);
    p->have = 0;
    begin(p);
    if (p->job.state == UNDER_WAY)
        return FETCHING;
    return ready(x, p) > 0 ? FETCHED : failed(p->have < 0 ? (int)-p->have : EIO);
}

/* A client who does not read must not have much of our memory: PIECE_KEPT stay, the rest will be
 * read once more. */
ssize_t piece_send(int fd, struct exchange *x, size_t most)
{
    struct piece *p = x->held;
    size_t n = ready(x, p), at = (size_t)(exchange_offset(x) - p->from);
    ssize_t sent =
        send(fd, p->buffer + at, n < most ? n : most, x->reply.may_close ? FIN_FOLLOWS : 0);

    if (sent < 0 && errno == EAGAIN && p->room > PIECE_KEPT) {
        change_buffer(p, PIECE_KEPT, at - at % PIECE_ALIGN);
        errno = EAGAIN;
    }
    return sent;
}

void piece_read(struct job *job)
{
    struct piece *p = (struct piece *)job;

    do
        p->have = pread(p->fd, p->buffer, p->want, p->from);
    while (p->have < 0 && errno == EINTR);
    p->have = p->have < 0 ? -errno : p->have;
}

/* A pool of threads reads what is not in memory; the loop sends from there. */
static struct pool *pool;

static void start_threads(int readers)
{
    pool = pool_start(readers);
}

static void begin_in_thread(struct piece *p)
{
    p->job.run = piece_read;
    pool_run(pool, &p->job);
}

static enum fetched fetch_by_thread(struct exchange *x)
{
    return piece_fetch(x, begin_in_thread);
}

const struct backend backend_threads = {.name = "threads",
                                        .start = start_threads,
                                        .fetch = fetch_by_thread,
                                        .send = piece_send,
                                        .end = piece_end};
