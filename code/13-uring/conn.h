/*
 * conn.h: a connection whose operations the kernel has in hand. `in_flight` counts the completions
 * that are to come with its address or its job's (not of a job that has left); the connection is
 * freed only when that is 0.
 *
 *                       a request is complete
 *     accept -> RECEIVING -----------------> REPLYING   waits for a piece: memory (job.h)
 *                 |   ^                       |    |    open, stat: the job is the kernel's
 *                 |   |   all is sent,        |    |    read, send: the piece, too
 *                 |   +--- keep-alive --------+    |    held_up: polls for POLLOUT, has no piece
 *                 |                                |
 *                 |  time is up, no request        |  all is sent, it was the last reply
 *                 +----------> LINGERING <---------+
 *                                  |
 *     any state -> ENDING <--------+  the reply has arrived, the client has closed, or time is up
 *                    |
 *                    |  The socket is shut, so that what is in flight fails soon. A job that is
 *                    |  at the disk leaves: it is freed by its own completion.
 *                    v
 *              in_flight == 0: close, free
 */
#ifndef URING_CONN_H
#define URING_CONN_H

#include <stdbool.h>
#include <stddef.h>

#include "13-uring/job.h"
#include "linger.h"
#include "list.h"

enum uring_state { RECEIVING, REPLYING, LINGERING, ENDING };

struct uring_conn {
    int slot; /* of the socket in the ring's table: not a descriptor of the process */
    int in_flight;
    enum uring_state state;
    bool no_wait;           /* RECEIVING: time is up; only what has come already is received */
    bool half_closed;       /* shut for sending */
    bool held_up;           /* the reply waits for the client to read */
    bool renewed;           /* this step has its time once more, after a stall (clock.h) */
    bool replied;           /* it had a reply before, which may still be under way */
    unsigned short have;    /* bytes in `in` */
    unsigned short starved; /* receives in a row that found no buffer */
    unsigned discarded;     /* LINGERING: receives whose bytes were thrown away */
    struct linger_state linger;
    char *in;              /* what has come of requests not yet answered; else NULL */
    struct uring_job *job; /* REPLYING; else NULL */
    long long since;       /* when the step in hand began, or LINGERING, by now_ms() */
    long long deadline;    /* of the step; LINGERING: of the next look whether all has arrived */
    struct list node;      /* in the list of its state, unless ENDING */
};

/* NULL without memory. uring_conn_free() neither closes the slot nor frees a job. */
struct uring_conn *uring_conn_new(int slot);
void uring_conn_free(struct uring_conn *c);
extern int uring_conns; /* how many there are */

/* Appends a copy of what a client sent, false without memory; forgets the first `used` bytes. */
bool uring_conn_keep(struct uring_conn *c, const char *bytes, size_t len);
void uring_conn_forget(struct uring_conn *c, size_t used);

/* Detaches the job, for which uring_job_can_leave() must be true: frees it now, or leaves that to
 * the completion of its open, stat or read. */
void uring_conn_leave_job(struct uring_conn *c);

/* Enters this state; a step begins, for which there are `ms`. They are the same for all in a state,
 * so a list in the order of entry is in the order of deadlines. */
void uring_conn_begin_step(struct uring_conn *c, enum uring_state state, int ms);

/* After a stall: `ms` more, once in a step, for those that are held up and whose time is up. */
void uring_conns_renew_overdue(int ms);

/* The one that has been RECEIVING for the longest time; the one whose deadline is next. NULL if
 * there is none. */
struct uring_conn *uring_conn_longest_idle(void);
struct uring_conn *uring_conn_next_due(void);

/* The first client that is held up, has been in this step for FULL_STEP_MS and has taken less than
 * UNSENT_PROOF bytes of its reply; NULL: none. */
struct uring_conn *uring_conn_slowest(void);

/* The one to end for a new client, by the rule of clients_make_room() in 06-select; NULL: none. */
struct uring_conn *uring_conn_that_leaves(int ms);

#endif
