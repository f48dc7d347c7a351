#include "13-uring/buffers.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "die.h"
#include "http_parse.h"

#define RECEIVED 64 /* a power of two: places in a ring, taken in turn, so all are touched */
#define PIECES   256
#define MOST     128 /* of a lane */

/* Pages, and only those that were ever used take memory. */
static _Alignas(4096) char received[RECEIVED][HTTP_HEAD_MAX];

static struct io_uring_buf_ring *provided;

/* The last one given back is the first to be taken: it is in the processor's cache. */
static struct {
    char *spare[MOST];
    unsigned spares;
} lanes[LANES];

static void provide(int id)
{
    io_uring_buf_ring_add(provided, received[id], sizeof received[id], (unsigned short)id,
                          io_uring_buf_ring_mask(RECEIVED), 0);
    io_uring_buf_ring_advance(provided, 1);
}

static unsigned within(unsigned least, unsigned n, unsigned most)
{
    return n < least ? least : n > most ? most : n;
}

void buffers_set_up(unsigned workers)
{
    /* A quarter of the workers is for what is in memory: statx() always takes one. */
    unsigned sizes[LANES] = {[NAMES] = within(1, workers / 4, MOST / 2),
                             [BYTES] = within(1, workers / 2, MOST),
                             [CACHED] = MOST / 2};
    void *ring, *pieces;

    errno = posix_memalign(&ring, 4096, RECEIVED * sizeof(struct io_uring_buf));
    if (errno != 0)
        die_errno("posix_memalign");
    provided = ring;
    io_uring_buf_ring_init(provided);
    ring_provide(provided, RECEIVED);
    for (int id = 0; id < RECEIVED; id++)
        provide(id);
    errno = posix_memalign(&pieces, 4096, PIECES * (size_t)PIECE_BYTES);
    if (errno != 0)
        die_errno("posix_memalign");
    char *next = pieces;
    for (enum lane lane = 0; lane < LANES; lane++)
        for (; lanes[lane].spares < sizes[lane]; next += PIECE_BYTES)
            buffers_give_piece(lane, next);
}

static int buffer_id(const struct io_uring_cqe *cqe)
{
    if ((cqe->flags & IORING_CQE_F_BUFFER) == 0)
        return -1;
    return (int)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
}

const char *buffers_received(const struct io_uring_cqe *cqe)
{
    int id = buffer_id(cqe);

    return id >= 0 ? received[id] : NULL;
}

void buffers_give_back(const struct io_uring_cqe *cqe)
{
    int id = buffer_id(cqe);

    if (id >= 0)
        provide(id);
}

char *buffers_take_piece(enum lane lane)
{
    return lanes[lane].spares > 0 ? lanes[lane].spare[--lanes[lane].spares] : NULL;
}

void buffers_give_piece(enum lane lane, char *piece)
{
    lanes[lane].spare[lanes[lane].spares++] = piece;
}
