/*
 * conn.h: what a connection owns, and in which order connections are to be ended if nothing comes.
 * None of this talks to the kernel: server.c and steps.c do.
 */
#ifndef CONN_H
#define CONN_H

#include <stdbool.h>
#include <stddef.h>

#include "13-uring/sending.h"

struct conn {
    int slot;      /* its socket in the ring's table: not a descriptor of the process */
    int in_flight; /* who still names it: operations of the kernel, or the queue for a piece */
    bool ending;   /* to be freed when nobody does */
    bool draining; /* the last reply is out; what still comes is thrown away */
    bool shut;     /* for reading, as the server stops */
    unsigned short have; /* bytes in `in` */
    char *in;            /* what has come of requests not yet answered; else NULL */
    struct sending *out; /* the request in hand; else NULL */
    char *piece;         /* of the reply: while it is read and sent; else NULL */
    long long deadline;  /* of the step in hand, by conn_now(): then the connection shall end */
    struct conn *older, *newer; /* among all with the same time-out, by activity */
    struct conn *next;          /* in the queue for a piece */
};

/* Milliseconds, of a clock that is never set. */
long long conn_now(void);

/* NULL without memory. */
struct conn *conn_new(int slot);
void conn_free(struct conn *c);
int conn_count(void);

/* What a client has sent: keep it; forget the first `used` bytes of it. */
bool conn_keep(struct conn *c, const char *bytes, size_t len);
void conn_forget(struct conn *c, size_t used);

/* From now on the client has `ms`. The time-out is the same for all (for those that are drained:
 * the same other one), so a queue by activity is a queue by deadline, and all of this is O(1). */
void conn_begin_step(struct conn *c, int ms);
void conn_leave_queue(struct conn *c);

/* One whose deadline has passed, NULL if there is none; and ms until the next one, -1: never. */
struct conn *conn_overdue(void);
int conn_patience(void);

/* Calls `shut` for all that are not marked as shut, until it returns false. */
void conn_shut_all(bool (*shut)(struct conn *c));

/* Gets a piece for c: at once, or c waits in a queue: first come, first served. */
bool conn_has_piece(struct conn *c);

/* The first in that queue, with its piece; NULL if there is nobody, or no piece. */
struct conn *conn_next_with_piece(void);
void conn_give_piece(struct conn *c);

#endif
