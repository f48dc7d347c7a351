/*
 * conn.h: what a connection owns, and in which order connections are to be ended if nothing comes.
 * None of this talks to the kernel: server.c and steps.c do.
 */
#ifndef CONN_H
#define CONN_H

#include <stdbool.h>
#include <stddef.h>

#include "13-uring/buffers.h"
#include "13-uring/sending.h"

struct conn {
    int slot; /* its socket in the ring's table: not a descriptor of the process; -1: given up */
    int in_flight;    /* who still names it: operations of the kernel, or the queue for a piece */
    bool ending;      /* to be freed when nobody does */
    bool lingering;   /* the last reply is out, and has perhaps not arrived */
    bool unread;      /* ... and the client may be sending what nobody will read */
    bool stopped;     /* has been told that the server stops */
    bool half_closed; /* shut for sending */
    bool held_up;     /* the reply waits for the client to read */
    unsigned short have;    /* bytes in `in` */
    unsigned short looks;   /* while lingering: how often it will be looked at again ... */
    unsigned short buffers; /* ... and how many buffers of what nobody reads may still come */
    unsigned short starved; /* how often in a row there was no buffer for what has come */
    char *in;               /* what has come of requests not yet answered; else NULL */
    struct sending *out;    /* the request in hand; else NULL */
    char *piece;            /* of the reply: while it is read and sent; else NULL */
    enum lane lane;         /* of the piece, or in whose queue it waits for one */
    long long since;        /* when the step in hand, or lingering, began, by now_ms() */
    long long deadline; /* of that step: then the connection shall end (lingering: be looked at) */
    struct conn *older, *newer; /* among all with the same time-out, by activity */
    struct conn *next;          /* in the queue for a piece */
};

/* NULL without memory. */
struct conn *conn_new(int slot);
void conn_free(struct conn *c);
int conn_count(void);

/* What a client has sent: keep it; forget the first `used` bytes of it. */
bool conn_keep(struct conn *c, const char *bytes, size_t len);
void conn_forget(struct conn *c, size_t used);

/* From now on the client has `ms`. The time-out is the same for all (for those that linger: the
 * same other one), so a queue by activity is a queue by deadline, and all of this is O(1). */
void conn_begin_step(struct conn *c, int ms);
void conn_leave_queue(struct conn *c);

/* One whose deadline has passed, NULL if there is none; and ms until the next one, -1: never. */
struct conn *conn_overdue(void);
int conn_timeout_ms(void);

/* The one that is to leave for a new client, as clients_make_room() of 06-select/clients.h has it;
 * NULL if there is none. */
struct conn *conn_that_leaves(int ms);

/* The slowest reply, if it is below that floor: it holds a file. */
struct conn *conn_slowest_reply(void);

/* Calls `stop` for all that are not marked as stopped and do not linger, until it returns false. */
void conn_stop_all(bool (*stop)(struct conn *c));

/* Gets a piece of this lane for c: at once, or c waits in a queue: first come, first served. */
bool conn_has_piece(struct conn *c, enum lane lane);

/* The first in such a queue, with its piece; NULL if there is none, or no piece. */
struct conn *conn_next_with_piece(void);
void conn_give_piece(struct conn *c);

/*
 * The kernel has an operation in hand that may never end, and all that it names is c's. A new
 * connection takes over the socket, and what has come of it; c is to be freed when the kernel has
 * done, if ever. NULL without memory.
 */
struct conn *conn_give_up(struct conn *c);
int conn_given_up(void);

#endif
