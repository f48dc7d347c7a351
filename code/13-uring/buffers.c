#include "13-uring/buffers.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "die.h"
#include "http_parse.h"

#define RECEIVED 64  /* a power of two: places in a ring, taken in turn, so all are touched */
#define PIECES   256 /* more than there are workers: some read while others send */

/* Pages, and only those that were ever used take memory. */
static _Alignas(4096) char received[RECEIVED][HTTP_HEAD_MAX];

static struct io_uring_buf_ring *provided;

/* The last one given back is the first to be taken: it is in the processor's cache. */
static char *spare[PIECES];
static int spares;

static void provide(int id)
{
    io_uring_buf_ring_add(provided, received[id], sizeof received[id], (unsigned short)id,
                          io_uring_buf_ring_mask(RECEIVED), 0);
    io_uring_buf_ring_advance(provided, 1);
}

void buffers_set_up(void)
{
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
    for (spares = 0; spares < PIECES; spares++)
        spare[spares] = (char *)pieces + (PIECES - 1 - spares) * (size_t)PIECE_BYTES;
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

char *buffers_take_piece(void)
{
    return spares > 0 ? spare[--spares] : NULL;
}

void buffers_give_piece(char *piece)
{
    spare[spares++] = piece;
}
