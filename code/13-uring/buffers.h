/*
 * buffers.h: the memory the kernel may write to or read from while nobody is in a system call.
 * There is a fixed amount of it, and a connection has some only while the kernel is at work for
 * it: who waits for the client, be it for a request or for room in the socket, waits without.
 */
#ifndef BUFFERS_H
#define BUFFERS_H

#include <stdbool.h>

#include "13-uring/ring.h"

#define PIECE_BYTES 65536 /* of a reply: what is read of the file at a time, the head in front */

/* `workers` of the kernel may wait for the disk. */
void buffers_set_up(unsigned workers);

/*
 * For what clients send: buffers that belong to no connection. The kernel takes one when data is
 * there, not when the wait for it begins, and its completion says which. They are given back in the
 * turn in which they came, so they are never short for longer than that.
 */
const char *buffers_received(const struct io_uring_cqe *cqe);
void buffers_give_back(const struct io_uring_cqe *cqe);

/*
 * For what is sent. A piece is of a lane, and there are as many as may be under way in it: what is
 * in memory takes one for a moment; what is not has one, and a worker, for as long as the disk
 * takes. So the first never waits for the others, nor do those that want a name for those that
 * want bytes.
 */
enum lane { CACHED, NAMES, BYTES, LANES };

/* NULL if all of the lane are in use. */
char *buffers_take_piece(enum lane lane);
void buffers_give_piece(enum lane lane, char *piece);

#endif
