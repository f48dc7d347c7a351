/*
 * The engine: one epoll loop that drives the measured clients and the crowd through warm-up and
 * measurement. One thread; everything it owns is in struct engine (run.h).
 */
#ifndef HAMMER_ENGINE_H
#define HAMMER_ENGINE_H

#include "run.h"

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
