/*
 * wait_ways.h: how a process can wait until one of many sockets can be read.
 */
#ifndef WAIT_WAYS_H
#define WAIT_WAYS_H

#include <stddef.h>

#define WAIT_PATIENCE 10 /* seconds: the time-out of a wait, as a server has one */

/* One way is used in a process, once: what it has to remember is its own. All die if they fail. */
struct wait_way {
    const char *name;
    /* Prepares to wait for count sockets. */
    void (*open)(const int *fds, size_t count);
    /*
     * One wait: puts sockets that can be read into ready, at most `most`, and returns how many.
     * Adds the system calls it needed, those in which a signal handler returns among them. 0: none
     * until the time-out, or, where signals are collected by a handler or a descriptor, none yet.
     */
    size_t (*wait)(int *ready, size_t most, size_t *calls);
};

/* NULL if there is none of that name, or this system does not have it. */
const struct wait_way *wait_way_named(const char *name);

/* What this system has beside select and poll; the last one of each has no name. */
extern const struct wait_way system_wait_ways[];
extern const struct wait_way kqueue_wait_ways[];

#endif
