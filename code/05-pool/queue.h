/*
 * queue.h: connections that are accepted and not yet served: a queue between the thread that
 * accepts and those that serve. connections_add() limits how many there are.
 */
#ifndef QUEUE_H
#define QUEUE_H

#include "04-threads/connections.h"

/* Room for `most` connections, as many as there can be. A failure ends the program. */
void queue_init(int most);

/* Appends conn. Never waits, so the caller sees to it that there is room. */
void queue_put(struct connection *conn);

/* Returns the oldest, after waiting while there is none; NULL when it is closed and empty. */
struct connection *queue_take(void);

/* No connection will be put any more: queue_take() returns NULL once the queue is empty. */
void queue_close(void);

#endif
