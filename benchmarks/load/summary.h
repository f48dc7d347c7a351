/* The figures that both reports derive from the counts, so that they cannot differ. */
#ifndef HAMMER_SUMMARY_H
#define HAMMER_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

struct summary {
    double seconds;
    uint64_t failed;
    double good_per_s;
    double bytes_per_s;  /* of all bytes received */
    double cpu_share;    /* hammer's own CPU time over wall time */
    bool client_bound;   /* above 0.9: the figures are about hammer, not about the server */
    double little_x;     /* finished requests per second, good or not */
    double little_r;     /* mean seconds of one */
    double little_ratio; /* x * r / n; well below 1: the n clients were not all kept busy */
};

struct summary summarize(const struct engine *engine);

/* "slow", "slow_read", "half_dead", "idle". */
const char *summary_crowd_name(enum crowd_kind kind);

#endif
