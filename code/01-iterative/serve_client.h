/*
 * serve_client.h: one connection from start to end, with calls that block. The servers with a
 * process or a thread per connection (01 to 05) share it: they differ in who calls it, not in what
 * is served.
 */
#ifndef SERVE_CLIENT_H
#define SERVE_CLIENT_H

#include <stdbool.h>

#include "options.h"

/*
 * Two limits end a client that keeps its server waiting for o->timeout seconds: one call without a
 * byte, and one step (a request head, 64 KiB of a reply) that crawls. The second is a clock looked
 * at between calls, so a step takes at most twice the time-out.
 */
struct serve {
    const struct options *options;
    bool keep_alive; /* may a client send more than one request? */
    /* Set at the start of each step to o->timeout seconds: alarm(2) in a process of its own; NULL
     * where socket time-outs do the waking. */
    unsigned (*watchdog)(unsigned seconds);
};

/* Socket time-outs of `seconds` for every recv and send on fd. Returns 0; or -1 if there can be
 * none, and then the client has been told, 503, and the caller closes fd. */
int serve_set_timeouts(int fd, int seconds);

/* Answers requests on fd until one side has had enough. The caller closes fd. */
void serve_client(int fd, const struct serve *s);

#endif
