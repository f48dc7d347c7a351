#include "12-aio/piece.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "11-sendfile/send_path.h"

/* Kept for the next replies: new memory costs a page fault a page. */
#define SPARE_BUFFERS 16

static char *spare[SPARE_BUFFERS];
static int spares;

static char *take_buffer(size_t room)
{
    void *buffer;

    if (room == PIECE_SIZE && spares > 0)
        return spare[--spares];
    return posix_memalign(&buffer, PIECE_ALIGN, room) == 0 ? buffer : NULL;
}

static void give_buffer(struct piece *p)
{
    if (p->room == PIECE_SIZE && spares < SPARE_BUFFERS)
        spare[spares++] = p->buffer;
    else
        free(p->buffer);
}

static struct piece *new_piece(struct sending *s)
{
    struct piece *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->job.conn = s->conn;
    p->room = PIECE_SIZE;
    p->buffer = take_buffer(p->room);
    if (p->buffer == NULL) {
        free(p);
        return NULL;
    }
    s->held = p;
    return p;
}

void piece_end(struct sending *s)
{
    struct piece *p = s->held;

    if (p == NULL)
        return;
    give_buffer(p);
    free(p);
}

/* How many bytes of the reply the piece has from its offset on. */
static size_t ready(const struct sending *s, const struct piece *p)
{
    off_t end = p->from + (p->have > 0 ? p->have : 0);

    if (s->reply.offset < p->from || s->reply.offset >= end)
        return 0;
    return (size_t)((end < s->reply.end ? end : s->reply.end) - s->reply.offset);
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

/* region: fetch */
enum fetched piece_fetch(struct sending *s, void (*begin)(struct piece *p))
{
    struct reply *r = &s->reply;
    struct piece *p = s->held;

    if (p == NULL && (p = new_piece(s)) == NULL)
        return FETCH_FAILED;
    if (p->job.state == UNDER_WAY)
        return FETCHING;
    if (ready(s, p) > 0)
        return FETCHED;
    if (p->job.state == OVER) {
        p->job.state = IDLE;
        if (p->have < 0 || r->offset == p->wanted)
            return FETCH_FAILED; /* an error, or the file is shorter than promised */
    }
    if (p->room < PIECE_SIZE)
        change_buffer(p, PIECE_SIZE, p->room);
    p->fd = r->fd;
    p->wanted = r->offset;
    p->from = r->offset - r->offset % PIECE_ALIGN;
    off_t left = (r->end - p->from + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN;
    p->want = left < (off_t)p->room ? (size_t)left : p->room;
    p->have = 0;
    begin(p);
    return p->job.state == UNDER_WAY ? FETCHING : ready(s, p) > 0 ? FETCHED : FETCH_FAILED;
}
/* endregion: fetch */

/* region: send */
/* A client who does not read must not have much of our memory: PIECE_KEPT stay, the rest will be
 * read once more. */
ssize_t piece_send(int fd, struct sending *s, size_t most)
{
    struct piece *p = s->held;
    size_t n = ready(s, p), at = (size_t)(s->reply.offset - p->from);
    ssize_t sent = send(fd, p->buffer + at, n < most ? n : most, 0);

    if (sent < 0 && errno == EAGAIN && p->room > PIECE_KEPT) {
        change_buffer(p, PIECE_KEPT, at - at % PIECE_ALIGN);
        errno = EAGAIN;
    }
    return sent;
}
/* endregion: send */

void piece_read(struct job *job)
{
    struct piece *p = (struct piece *)job;

    do
        p->have = pread(p->fd, p->buffer, p->want, p->from);
    while (p->have < 0 && errno == EINTR);
}
