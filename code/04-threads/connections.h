/*
 * connections.h: what the threads of a server share: the list of its connections. When the
 * server is told to stop, the main thread wakes the others through it, and waits for them.
 */
#ifndef CONNECTIONS_H
#define CONNECTIONS_H

#include <pthread.h>
#include <stdbool.h>

#include "list.h"
#include "options.h"

struct connection {
    int fd;
    const struct options *options;
    bool owned; /* by `thread`, which serves it */
    pthread_t thread;
    struct list node; /* in the list of all */
};

/* For threads that are not joined, with a stack that serve_client() fits into. */
extern pthread_attr_t detached;

/* After stop_on_signals() and before the first thread: at most `most` connections from here on; 0
 * means a default. A failure ends the program. */
void connections_init(int most);

/* Around pthread_create(): a thread inherits the mask, so signals go to the main thread alone. */
void connections_hold(void);
void connections_release(void);

/* Takes fd over and returns its connection, after waiting while there are too many of them. Without
 * memory, or if the signal to stop ends the wait, it sends a 503, closes fd and returns NULL. */
struct connection *connections_add(int fd, const struct options *o);

/* The thread that calls serves it from here on, and is woken when the server stops. */
void connections_own(struct connection *conn);

/* Closes the connection and frees it. */
void connections_remove(struct connection *conn);

/* After the signal to stop: wakes those that sleep in recv(), and waits until the last connection
 * is gone, at most STOP_GRACE seconds. */
void connections_end(void);

#endif
