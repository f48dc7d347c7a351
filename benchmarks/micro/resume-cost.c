/*
 * resume-cost: what does it cost to let a coroutine of 16-coroutines go on, until it yields?
 *
 * Shows: -c coroutines are resumed in turn, and each yields at once. resume_ns is the mean of one
 * lap, or of as many laps as make 1000 resumes: two switches of the stack each, there and back.
 * With many of them each stack's own lines have left the cache before its next turn.
 * Linked with switch_asm.c; resume-cost-ucontext is the same with swapcontext(3).
 * Needs: two mappings for each coroutine (vm.max_map_count).
 * Run:   taskset -c 0 resume-cost -c 1000
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "16-coroutines/coroutine.h"
#include "die.h"
#include "micro.h"

#define MAX_SAMPLES    100000
#define MAX_COROUTINES 30000
#define BATCH          1000 /* resumes in a sample at least: long against reading the clock */

static int yield_for_ever(void *arg)
{
    (void)arg;
    for (;;)
        coroutine_yield(0);
    return 0;
}

static double resume_ns(struct coroutine **all, size_t count)
{
    size_t laps = (BATCH + count - 1) / count;
    uint64_t start = now_ns();

    for (size_t lap = 0; lap < laps; lap++)
        for (size_t i = 0; i < count; i++)
            coroutine_resume(all[i], 0);
    return (double)(now_ns() - start) / (double)(laps * count);
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 100, 0},
        {'c', "COROUTINES", 1, MAX_COROUTINES, 1, 0},
    };
    const struct command_line line = {.options = options, .count = 2, .arguments = ""};
    read_command_line(argc, argv, &line);
    size_t samples_count = options[0].value, count = options[1].value;
    double *samples = samples_new(samples_count, sizeof *samples);
    struct coroutine **all = samples_new(count, sizeof *all);

    for (size_t i = 0; i < count; i++)
        if ((all[i] = coroutine_new(yield_for_ever, NULL)) == NULL)
            die_errno("a stack for coroutine %zu", i + 1);
    resume_ns(all, count); /* the first time its pages are made */
    for (size_t i = 0; i < samples_count; i++)
        samples[i] = resume_ns(all, count);

    puts("resume_ns");
    for (size_t i = 0; i < samples_count; i++)
        printf("%.1f\n", samples[i]);
    samples_finish();
    free(samples);
    free(all); /* their stacks end with the process: none has come to its end */
    return EXIT_SUCCESS;
}
