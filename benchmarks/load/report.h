/* The result of a run, for people and for programs. */
#ifndef HAMMER_REPORT_H
#define HAMMER_REPORT_H

#include <stdio.h>

#include "engine.h"

/* The summary http_load printed, and below it what http_load did not measure. */
void report_text(const struct engine *engine, FILE *out);

/* One JSON object on one line; README.md describes it. */
void report_json(const struct engine *engine, FILE *out);

#endif
