/* The result of a run, for people and for programs. */
#ifndef HAMMER_REPORT_H
#define HAMMER_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "run.h"

/* The summary http_load printed, and below it what http_load did not measure. */
void report_text(const struct engine *engine, FILE *out);

/* One JSON object on one line; README.md describes it. */
void report_json(const struct engine *engine, FILE *out);

/* The figures that both derive from the counts, so that they cannot differ. */
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
