/*
 * The engine: one epoll loop that drives the measured clients and the crowd through warm-up and
 * measurement. One thread; everything it owns is in struct engine.
 */
#ifndef HAMMER_ENGINE_H
#define HAMMER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client.h"
#include "crowd.h"
#include "deadline.h"
#include "herd.h"
#include "options.h"
#include "outcome.h"
#include "samples.h"
#include "schedule.h"
#include "tally.h"
#include "url.h"

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

/* The list of free clients: first in, first out, so that all connections are used alike. */
void engine_add_free(struct engine *engine, struct client *client);
struct client *engine_take_free(struct engine *engine);

#endif
