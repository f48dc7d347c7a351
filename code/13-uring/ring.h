/*
 * ring.h: the two queues shared with the kernel. What is to be done is written into the one
 * (submissions, SQE), what was done is read from the other (completions, CQE), and one system call,
 * io_uring_enter(2), both hands over and waits.
 */
#ifndef RING_H
#define RING_H

#include <stdbool.h>

#include <liburing.h>

#define RING_SUBMISSIONS 256
#define RING_COMPLETIONS 512
#define RING_STEP        8 /* submissions that one completion leads to, at most */

/* The data of submissions that are of no connection: accept(), the wait for somebody to accept, and
 * those of whose success nobody needs to hear. All other data are pointers. */
#define RING_GUEST   0
#define RING_NOBODY  1
#define RING_PENDING 2

/*
 * Makes the ring, with up to `workers` threads of the kernel for what would block. Where the kernel
 * or a container does not allow that, one line says what is missing and the remedy, and the program
 * ends with EXIT_UNSUPPORTED.
 */
void ring_set_up(unsigned workers);

/* Lets the kernel take the buffers in `queue`, of `count` places, for what it receives. */
void ring_provide(struct io_uring_buf_ring *queue, unsigned count);

/* How many sockets its table of direct descriptors holds. */
int ring_slots(void);

/* Makes sure that there is room for RING_STEP submissions; false if the kernel takes none now. */
bool ring_room(void);

/*
 * The next free submission, whose completion will bear `data`. It cannot fail after ring_room(),
 * and the kernel sees it with the next ring_wait() or ring_room().
 */
struct io_uring_sqe *ring_sqe(unsigned long long data);

/* Hands over what was submitted, and waits for a completion: at most so many ms, -1 for ever. */
void ring_wait(int ms);

/* Takes the next completion; false if there is none, or no room for what it may lead to. */
bool ring_next(struct io_uring_cqe *cqe);

/* Hands over what is left, and gives the ring back. */
void ring_end(void);

#endif
