/* How the fate of a request enters the tallies and the samples, and how a run went as a whole. */
#ifndef HAMMER_RECORD_H
#define HAMMER_RECORD_H

#include "run.h"

/* The tally its current request belongs to: warm-up or measurement. */
struct tally *record_tally(struct engine *engine, const struct client *client);

/* The tally of this moment: for what belongs to no request. */
struct tally *record_tally_now(struct engine *engine);

/* The request has come to its end: good, or with this error. */
void record_fetch(struct engine *engine, struct client *client, enum fetch_error error,
                  uint64_t now);

/* A complete reply: counts its status and says whether the fetch was good. */
enum fetch_error record_judge(struct engine *engine, const struct client *client);

/* What a reply that did not end well counts as. */
enum fetch_error record_reply_error(enum reply_result result);

/* Open loop: the request starts now, which may be later than intended. */
void record_lateness(struct engine *engine, const struct client *client, uint64_t now);

/* The measuring begins: notes the CPU time used so far. */
void outcome_begin(struct outcome *outcome);

/* The run is over, its connections are still open: fills in everything but `signal`. */
void outcome_end(struct engine *engine);

#endif
