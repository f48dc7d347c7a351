/*
 * waits.h: the ways to wait for a time that are Linux's own, and how exactly it keeps them all.
 */
#ifndef WAITS_H
#define WAITS_H

#include <stdint.h>

struct way {
    const char *name;
    uint64_t unit_ns;         /* the finest step in which a time can be asked for */
    int (*open)(void);        /* makes what wait needs; -1 with errno; may be NULL */
    int (*wait)(uint64_t ns); /* returns when the time is over; -1 with errno */
    uint64_t (*left)(void);   /* if an event ends the wait, after half of the time: what was left */
};

/* NULL if there is no such way; dies with EXIT_UNSUPPORTED where none of them can be had. */
const struct way *linux_way_named(const char *name);

/* How much later than asked the timers of this thread may expire; -1 with errno. */
int set_timer_slack(unsigned long ns);

#endif
