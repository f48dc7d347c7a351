/*
 * ring.h: the two queues that the process shares with the kernel. The process writes what is to be
 * done into one (submissions, SQE) and reads what was done from the other (completions, CQE). One
 * system call, io_uring_enter(2), hands over the first and waits for the second.
 */
#ifndef URING_RING_H
#define URING_RING_H

#include <stdbool.h>

#include <liburing.h>

#define RING_COMPLETIONS 512
#define RING_STEP        8 /* submissions that one completion leads to, at most */

/* The data of submissions that belong to no connection: accept, the watch on a listening socket
 * while the table is full, the cancelling of these two, and those whose completion is ignored. All
 * other data are pointers. */
#define RING_ACCEPT  0
#define RING_IGNORED 1
#define RING_PENDING 2
#define RING_CANCEL  3

/*
 * Makes the ring, with at most `workers` threads of the kernel for operations that block, and gives
 * the kernel its receive buffers. If the kernel cannot, the program ends with one line and
 * EXIT_UNSUPPORTED; with EXIT_FAILURE where the limit of descriptors or processes is too low.
 */
void ring_set_up(unsigned workers);

/* The size of the ring's table of sockets (direct descriptors). */
int ring_slots(void);

/* Makes sure that there is room for RING_STEP submissions; false if the kernel takes none now. */
bool ring_room(void);

/* The next free submission, whose completion will bear `data`. After ring_room() it cannot fail for
 * RING_STEP calls. The kernel sees it with the next ring_wait() or ring_room(). */
struct io_uring_sqe *ring_sqe(unsigned long long data);

/* Hands over the submissions and waits for a completion, at most `ms`, without limit if -1. */
void ring_wait(int ms);

/* ring_wait() has heard that completions were lost (EBADR). Only the caller sets it back. */
extern bool ring_lost;

/* Takes the next completion; false if there is none, or no room for what it may lead to. */
bool ring_next(struct io_uring_cqe *cqe);

/*
 * Receive buffers belong to no connection. A receive that waits for bytes holds none: the kernel
 * takes one when bytes arrive, and the completion says which; NULL if it took none. Each is given
 * back after its completion was handled, in the same pass of the loop.
 */
const char *ring_received(const struct io_uring_cqe *cqe);
void ring_give_back(const struct io_uring_cqe *cqe);

/* True before Linux 6.13: a slot that is closed stays open until every operation of the ring that
 * was under way then has ended, and only then is the client told. So shut the socket first. */
bool ring_closes_late(void);

/* Hands over the last submissions and frees the ring. */
void ring_end(void);

#endif
