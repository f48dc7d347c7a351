/*
 * connections.h: what the threads of a server share: the list of its connections. With it one
 * thread can wake all others when the server is told to stop, and main can wait for them.
 */
#ifndef CONNECTIONS_H
#define CONNECTIONS_H

#include <pthread.h>

#include "options.h"

struct connection {
    int fd;
    const struct options *options;
    struct connection *next, *previous;
};

/* For threads that nobody will join, with a stack that serve_client() fits into. */
extern pthread_attr_t detached;

/*
 * Before the first thread and before the socket listens: at most `most` connections from here on (0
 * means a default), and SIGTERM and SIGINT are blocked in all threads. A failure ends the program.
 */
void connections_init(int most);

/*
 * Starts the thread that waits for these signals. Then it sets `stopping` and shuts the listening
 * socket and all connections for reading: accept() fails, recv() returns 0, and what is still to be
 * sent is sent. A failure ends the program.
 */
void connections_stop_on_signals(int listen_fd);

/* Takes fd over and returns its connection, after waiting while there are too many of them. Without
 * memory it tells the client, closes fd and returns NULL. */
struct connection *connections_add(int fd, const struct options *o);

/* Closes the connection and frees it. */
void connections_remove(struct connection *conn);

/* Waits until the last connection is gone, or STOP_GRACE seconds are over. */
void connections_end(void);

#endif
