#include "12-aio/piece.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "11-sendfile/send_path.h"

/* Kept for the next replies: new memory costs a page fault a page. */
#define SPARE_BUFFERS 16

static char *spare[SPARE_BUFFERS];
static int spares;

static char *take_buffer(void)
{
    void *buffer;

    if (spares > 0)
        return spare[--spares];
    return posix_memalign(&buffer, PIECE_ALIGN, PIECE_SIZE) == 0 ? buffer : NULL;
}

static void give_buffer(char *buffer)
{
    if (buffer != NULL && spares < SPARE_BUFFERS)
        spare[spares++] = buffer;
    else
        free(buffer);
}

static struct piece *new_piece(struct sending *s)
{
    struct piece *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->job.conn = s->conn;
    p->buffer = take_buffer();
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
    give_buffer(p->buffer);
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
    p->fd = r->fd;
    p->wanted = r->offset;
    p->from = r->offset - r->offset % PIECE_ALIGN;
    off_t left = (r->end - p->from + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN;
    p->want = left < PIECE_SIZE ? (size_t)left : PIECE_SIZE;
    p->have = 0;
    begin(p);
    return p->job.state == UNDER_WAY ? FETCHING : ready(s, p) > 0 ? FETCHED : FETCH_FAILED;
}
/* endregion: fetch */

ssize_t piece_send(int fd, struct sending *s, size_t most)
{
    struct piece *p = s->held;
    size_t n = ready(s, p);

    return send(fd, p->buffer + (s->reply.offset - p->from), n < most ? n : most, 0);
}

void piece_read(struct job *job)
{
    struct piece *p = (struct piece *)job;

    do
        p->have = pread(p->fd, p->buffer, p->want, p->from);
    while (p->have < 0 && errno == EINTR);
}
