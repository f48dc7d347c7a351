/*
 * queue.h: connections that are accepted and not yet served: a bounded queue between the thread
 * that accepts and those that serve.
 */
#ifndef QUEUE_H
#define QUEUE_H

#include "04-threads/connections.h"

/* For `most` connections. A failure ends the program. */
void queue_init(int most);

/* Appends conn, after waiting while the queue is full. */
void queue_put(struct connection *conn);

/* Returns the oldest, after waiting while there is none; NULL when it is closed and empty. */
struct connection *queue_take(void);

/* Nothing is put any more: those who wait for a connection are let go. */
void queue_close(void);

#endif
