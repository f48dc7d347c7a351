/*
 * The state of a run, which engine.c drives and clients, crowd and records read and change. The
 * functions at the end are for hammer.c: one epoll loop takes the measured clients and the crowd
 * through warm-up and measurement. One thread.
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

/* splitmix64: small, fast, and the same sequence everywhere for the same seed. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* A number from 0 to n-1, 0 < n < 2^32. The bias of this scaling is below n / 2^32. */
static inline uint32_t random_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(((random_next(state) >> 32) * n) >> 32);
}

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

/*
 * `options`, `urls`, `herd_urls` and `samples` must outlive the engine and stay the caller's.
 * Returns 0, or -1 with errno and the name of the call that failed in *call.
 */
int engine_init(struct engine *engine, const struct options *options, struct url_list *urls,
                const struct url_list *herd_urls, struct samples *samples, const char **call);

/*
 * Runs to the end or to the first SIGINT or SIGTERM; a second one ends the process at once.
 * Returns 0, or -1 with errno and *call as above; errno 0 if *call says it all.
 */
int engine_run(struct engine *engine, const char **call);

void engine_free(struct engine *engine);

#endif
