/*
 * The state of a run: what engine.c drives, and clients, crowd and records work on. Data alone, so
 * that none of them needs the one that drives it.
 */
#ifndef HAMMER_RUN_H
#define HAMMER_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "client.h"
#include "clock.h"
#include "crowd.h"
#include "herd.h"
#include "options.h"
#include "schedule.h"
#include "tally.h"
#include "url.h"
#include "watch.h"

/* How it went as a whole, beside what the tallies count. */
struct outcome {
    int signal;           /* that ended it early, or 0 */
    uint64_t warm_up_ns;  /* that it really took */
    uint64_t measured_ns; /* likewise */
    uint64_t cpu_user_ns; /* of hammer itself, while measuring */
    uint64_t cpu_system_ns;
    uint64_t unfinished; /* requests in flight at the end */
    uint64_t oldest_unfinished_ns;
    uint64_t unsent; /* open loop: due, but never sent */
    uint64_t least_good;
    uint64_t most_good; /* good fetches of a single client */
};

enum { SCRATCH_SIZE = 65536 };

struct engine {
    const struct options *options;
    struct url_list *urls;
    struct source_list sources;
    struct samples *samples;
    int epoll_fd;
    struct watch_signal {
        enum watch_role role;
        int fd;
    } signal;
    uint64_t random;
    struct schedule schedule;
    struct deadline_queue timeouts; /* of requests in flight and lingering connections */
    struct deadline_queue rests;
    struct client *clients; /* options->connections of them */
    struct client *free_first;
    struct client *free_last;
    uint64_t in_flight;
    struct crowd crowd;
    struct herd herd;
    struct tally *warm_up;
    struct tally *measured;
    struct outcome outcome;
    char *scratch; /* SCRATCH_SIZE bytes, shared by all receives */
};

#endif
