/*
 * conn.h: a connection on libowfat: what comes is collected in an array of the library, what goes
 * out is put into a batch of it. The promises are those of want.h, except that the library is
 * level-triggered, and that WANT_AGAIN is never returned: a connection that wants another turn
 * waits for room to write, which there is.
 */
#ifndef OWFAT_CONN_H
#define OWFAT_CONN_H

#include <array.h>
#include <stdbool.h>

#include "linger.h"
#include "list.h"
#include "options.h"

struct owfat_conn {
    int fd;
    bool lingering; /* the last reply is out, and has perhaps not arrived */
    bool replied;   /* a reply went before, and may still be under way */
    struct linger_state linger;
    array in; /* what has come and is not answered; no memory while that is nothing */
    struct owfat_reply *out; /* the reply on its way; else NULL */
    const struct options *options;
    bool held_up;     /* the reply waits for the client to read */
    bool renewed;     /* this step has its time once more, after a stall (clock.h) */
    long long since;  /* when the step in hand, or lingering, began, by now_ms() */
    struct list node; /* in the list of all, which is in the order of `since` */
};

/* Makes fd, which does not block (accept_nonblocking()), a connection of the library. Returns false
 * without memory: the caller closes fd. */
bool owfat_init(struct owfat_conn *c, int fd, const struct options *o);

enum want owfat_handle(struct owfat_conn *c); /* one turn; on WANT_CLOSE the caller ends it */

/* The connection that is to be ended for a new client, by the rule of clients_make_room() in
 * 06-select/clients.h; NULL: none. */
struct owfat_conn *owfat_that_leaves(int ms);

/* After a stall: more time, once in a step, for replies whose time is up. */
void owfat_renew_overdue(void);

/* Its time is up: returns whether it shall end. As conn_expire() of 05b: if a reply has not
 * arrived it begins to linger. It gets another second if the client has sent bytes that are not
 * read yet, and while it lingers and has credit. */
bool owfat_expire(struct owfat_conn *c);

/* Closes fd and frees what the connection owns, not *c. Only at the end of a turn: until then the
 * library may have the descriptor in a queue, and the next connection would get its number. */
void owfat_end(struct owfat_conn *c);

#endif
