/*
 * conn.h: a connection on libowfat: what comes is collected in an array of the library, what goes
 * out is put into a batch of it. What is promised is that of want.h; but the library tells of what
 * is ready as long as it is so, and whoever wants another turn waits for room to write, which there
 * is.
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
    struct linger_state linger;
    array in; /* what has come and is not answered; no memory while that is nothing */
    struct owfat_reply *out; /* the reply on its way; else NULL */
    const struct options *options;
    bool held_up;     /* the reply waits for the client to read */
    long long since;  /* when the step in hand, or lingering, began, by now_ms() */
    struct list node; /* by that, among all */
};

/* Makes fd, just accepted, a connection of the library. Returns false without memory. */
bool owfat_init(struct owfat_conn *c, int fd, const struct options *o);

enum want owfat_handle(struct owfat_conn *c);

/* The one that is to leave for a new client, as clients_make_room() of 06-select/clients.h has it;
 * else NULL. */
struct owfat_conn *owfat_that_leaves(int ms);

/* Its time is up: whether it shall end. One that lingers gets another second, so many times. */
bool owfat_overdue(struct owfat_conn *c);

/* Closes fd and frees what the connection owns. Not in the middle of a turn: the library may have
 * the descriptor in a queue, and what is accepted next would be taken for it. */
void owfat_end(struct owfat_conn *c);

#endif
