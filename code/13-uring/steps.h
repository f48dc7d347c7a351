/*
 * steps.h: the life of a request, step by step: receive, open, stat, read and send. Each step is a
 * submission, and the next one is taken when its completion comes.
 */
#ifndef STEPS_H
#define STEPS_H

#include <stdbool.h>
#include <stddef.h>

#include "13-uring/conn.h"
#include "13-uring/ring.h"
#include "options.h"

/* What has been done when a completion comes. It travels in the low bits of the pointer to the
 * connection, which malloc() leaves free. */
enum step {
    RECEIVED = 1,
    OPENED,
    STATED,
    READ,
    SENT,
    WRITABLE,
    LOOKED,
    SHUT_TO_LINGER,
    SHUT,
    STEP_BITS = 15
};
_Static_assert(_Alignof(max_align_t) > STEP_BITS, "malloc() leaves too few bits free here");

void steps_set_up(const struct options *o);

/* There was no descriptor for a file: to be taken back by the one that has seen to it. */
extern bool steps_lack_files;

/* Begins with a connection that has just been accepted. */
void steps_begin(struct conn *c);

/* Goes on with a connection of which nothing is in flight. False: it shall end. */
bool steps_go_on(struct conn *c);

/* The same, after a completion. */
bool steps_completed(struct conn *c, enum step step, const struct io_uring_cqe *cqe);

/* The server stops: what has come is answered, and nobody waits for more. */
void steps_stop(struct conn *c);

/*
 * For one whose time is up. One that lingers is looked at again; one that waits for the disk, or
 * for those that do, is not to blame, and begins another step. If it has waited too long it is
 * told 503. False: it shall end.
 */
bool steps_overdue(struct conn *c);

/* Shuts the socket down: SHUT_WR, SHUT_RDWR. */
void steps_shut(struct conn *c, enum step step, int how);

/* Gives back what the request in hand holds. Nothing of it may be in flight. */
void steps_end_reply(struct conn *c);

#endif
