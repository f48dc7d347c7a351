/*
 * serve_client.h: one connection from start to end, with calls that block. The servers with a
 * process or a thread per connection (01 to 05) share it: they differ in the process or
 * thread that calls it, not in what is served.
 */
#ifndef SERVE_CLIENT_H
#define SERVE_CLIENT_H

#include <stdbool.h>

#include "options.h"

/*
 * A client has o->timeout seconds, by two clocks: the socket time-out of one call, and the deadline
 * of one step (a request head, 64 KiB of a reply). The deadline is checked between calls, so a step
 * takes at most twice the time-out.
 */
struct serve {
    const struct options *options;
    bool keep_alive; /* may a client send more than one request? */
    /* Called at the start of each step with o->timeout seconds: alarm(2) in a process that serves
     * one client, where SIGALRM ends the waiting (stop.h); NULL where the socket has time-outs. */
    unsigned (*watchdog)(unsigned seconds);
};

/* Socket time-outs of `seconds` for every recv and send on fd. Returns 0; or -1 if they
 * cannot be set: then the client has been sent a 503. The caller closes fd. */
int serve_set_timeouts(int fd, int seconds);

/* Answers requests on fd, a blocking socket, until the client or the server ends the connection.
 * The caller closes fd. */
void serve_client(int fd, const struct serve *s);

#endif
