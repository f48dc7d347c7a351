/* How a run went as a whole, beside what the tallies count. */
#ifndef HAMMER_OUTCOME_H
#define HAMMER_OUTCOME_H

#include <stdint.h>

struct engine;

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

/* The measuring begins: notes the CPU time used so far. */
void outcome_begin(struct outcome *outcome);

/* The run is over, its connections are still open: fills in everything but `signal`. */
void outcome_end(struct engine *engine);

#endif
