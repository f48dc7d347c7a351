/*
 * clock-cost: what does reading the clock cost, and how fine is it?
 *
 * Shows: cost_ns, the time of one clock_gettime(CLOCK_MONOTONIC) averaged over a batch of calls,
 * and step_ns, the smallest difference other than 0 between two readings that follow each other.
 * Where the clock is finer than a call is long, the step is the cost again; a coarse clock shows
 * its tick. No sample of another program means anything below the larger of the two.
 * Needs: nothing.
 * Run:   clock-cost -n 5
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "die.h"
#include "micro.h"

#define DEFAULT_SAMPLES 100
#define MAX_SAMPLES     100000
#define BATCH           1000     /* calls in one sample: their sum is long against one call */
#define MAX_READINGS    10000000 /* a clock that has not moved by then stands still */

struct sample {
    double cost_ns;
    uint64_t step_ns;
};

static double cost_ns(void)
{
    uint64_t start = now_ns();
    for (int i = 1; i < BATCH; i++)
        now_ns();
    return (double)(now_ns() - start) / BATCH;
}

static uint64_t step_ns(void)
{
    uint64_t smallest = UINT64_MAX;
    uint64_t before = now_ns();
    for (int i = 0; i < BATCH || smallest == UINT64_MAX; i++) {
        uint64_t now = now_ns();
        if (now != before && now - before < smallest)
            smallest = now - before;
        before = now;
        if (i >= MAX_READINGS)
            die(EXIT_FAILURE, "CLOCK_MONOTONIC does not move");
    }
    return smallest;
}

int main(int argc, char *argv[])
{
    size_t count = count_option(argc, argv, "SAMPLES", DEFAULT_SAMPLES, MAX_SAMPLES);
    struct sample *samples = samples_new(count, sizeof *samples);
    for (size_t i = 0; i < count; i++)
        samples[i] = (struct sample){.cost_ns = cost_ns(), .step_ns = step_ns()};

    puts("cost_ns\tstep_ns");
    for (size_t i = 0; i < count; i++)
        printf("%.1f\t%llu\n", samples[i].cost_ns, (unsigned long long)samples[i].step_ns);
    samples_finish();
    free(samples);
    return EXIT_SUCCESS;
}
