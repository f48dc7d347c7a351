/*
 * When requests are to be sent, and which of them count.
 *
 * Closed loop: whenever a client is free. Open loop: request i at origin + i / rate, whatever
 * happened to the ones before; this "intended" time is where its latency starts. The queue of
 * requests that wait for a free connection needs no memory: it is the numbers between the next
 * one to send and the last one due.
 *
 * No clock is read here; every function is told what time it is.
 */
#ifndef HAMMER_SCHEDULE_H
#define HAMMER_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

struct schedule {
    const struct options *options;
    bool open;
    bool measuring;  /* the warm-up is over */
    double interval; /* ns between intended times */
    uint64_t origin; /* where the warm-up begins */
    uint64_t measure_at;
    uint64_t end_at;  /* the measured window ends; CLOCK_NEVER: it ends with the last request */
    uint64_t give_up; /* what is unfinished by then is abandoned; CLOCK_NEVER: nothing is */
    uint64_t limit;   /* requests to take (open loop: with those of the warm-up) */
    uint64_t taken;   /* of those */
};

/* Begins the warm-up. `options` must outlive the schedule. */
void schedule_begin(struct schedule *s, const struct options *options, uint64_t now);

/*
 * Ends the warm-up. In a closed loop the requests in flight are the first to be measured: only
 * so is the number of completions in the window free of bias.
 */
void schedule_begin_measuring(struct schedule *s, uint64_t now, uint64_t in_flight);

/* Takes the next request if it is time for it, and says when it was intended to start. */
bool schedule_take(struct schedule *s, uint64_t now, uint64_t *intended);

/* Does a request that is complete now belong to the measurement (else to the warm-up)? */
bool schedule_is_measured(const struct schedule *s, uint64_t intended);

/* Open loop: how many requests are due and not taken. Closed loop: 0. */
uint64_t schedule_waiting(const struct schedule *s, uint64_t now);

/* Of those, the ones that do not belong to the warm-up. Before the measurement begins: all. */
uint64_t schedule_unsent(const struct schedule *s, uint64_t now);

/* The next time at which something changes by itself, or CLOCK_NEVER. */
uint64_t schedule_next(const struct schedule *s, uint64_t now, bool client_free);

/* Is it all over, with this many requests in flight? */
bool schedule_is_over(const struct schedule *s, uint64_t now, uint64_t in_flight);

#endif
