/*
 * steps.h: what a connection does, step by step: receive, open, stat, read and send. Each step is a
 * submission, and its completion leads to the next. Functions that return bool return false if the
 * connection shall end.
 */
#ifndef URING_STEPS_H
#define URING_STEPS_H

#include <stdbool.h>
#include <stddef.h>

#include "13-uring/conn.h"
#include "13-uring/ring.h"
#include "options.h"

/* What a completion is of. It travels in the low bits of the submission's data, which malloc()
 * leaves free. The rest is a pointer: up to READ to a job, from RECEIVED on to a connection. */
#define STEP_BITS 15
enum step { OPENED, STATED, READ, RECEIVED, SENT, WRITABLE, LOOKED, HALF_CLOSED, SHUT };
_Static_assert(_Alignof(max_align_t) > STEP_BITS, "malloc() leaves too few bits free here");

void steps_set_up(const struct options *o);

/* A new connection: submits its first receive. */
bool steps_begin(struct uring_conn *c);

/* serve_refusal() of refusal.h, by the ring. The caller's next submission must close the slot. */
void steps_refuse(int slot);

/* steps_go_on() submits the next step of a connection that has none in flight, or lets its job wait
 * for a piece. steps_completed() takes the result of a step, and goes on. */
bool steps_go_on(struct uring_conn *c);
bool steps_completed(struct uring_conn *c, enum step step, const struct io_uring_cqe *cqe);

/* The server stops, or the client's time is up: cancels the receive that waits. A request that has
 * come by now is answered, else the connection lingers. */
void steps_stop_waiting(struct uring_conn *c);

/* The deadline has passed. RECEIVING: steps_stop_waiting(). REPLYING: if the reply waits for its
 * client, false; else a new deadline, or, if the disk has taken too long, 503 (false if a part of
 * the reply is sent, or without memory). LINGERING: another look, or false without credit. */
bool steps_expire(struct uring_conn *c);

/* After a stall (clock.h): clients that read slowly, and the disk, have `ms` or more again. */
void steps_renew(int ms);

/* Shuts the socket; `how` as in shutdown(2). `step` is HALF_CLOSED or SHUT, for the completion. */
void steps_shut(struct uring_conn *c, enum step step, int how);

#endif
