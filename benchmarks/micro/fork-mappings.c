/*
 * fork-mappings: how does the time of fork() depend on how many mappings the parent has?
 *
 * Shows: fork_ns, until fork() has returned in the parent; total_ns, until the child, which ends at
 * once, has been waited for. mappings are those of one page each, with a gap between, that the
 * parent has beside its own; eleven steps from 0 to MAPPINGS. Nothing has been written to them
 * (untouched), so there is only the list to copy; or to each (touched), so that each has its page
 * and its own bookkeeping of who shares it. A fork() that fails is a line with the errno in column
 * error.
 * Needs: vm.max_map_count (65530, if nobody has changed it) above MAPPINGS.
 * Run:   fork-mappings -n 5 -m 10000 touched
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "micro.h"
#include "resident.h"

#define MAX_SAMPLES  10000
#define MAX_MAPPINGS 1000000
#define STEPS        10

/* Cuts mappings number first to last off a region that is one: every second page goes. */
static void cut(char *region, size_t page, size_t first, size_t last, int touch)
{
    for (size_t i = first; i < last; i++) {
        char *kept = region + 2 * i * page;
        if (munmap(kept + page, page) == -1)
            die_errno("munmap after %lu mappings", (unsigned long)i);
        if (touch)
            resident_fill(kept, kept + page);
    }
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 20, 0},
        {'m', "MAPPINGS", 0, MAX_MAPPINGS, 10000, 0},
    };
    struct command_line line = {options, 2, "untouched|touched", 1, 1};
    const char *kind = read_command_line(argc, argv, &line)[0];
    if (strcmp(kind, "untouched") != 0 && strcmp(kind, "touched") != 0)
        refuse(&line);
    children_signals();

    size_t per_step = options[0].value, most = options[1].value, count = 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct fork_sample *samples = samples_new((STEPS + 1) * per_step, sizeof *samples);
    char *region = resident_reserve(2 * most * page, SMALL_PAGES);
    for (size_t step = 0, before = 0; step <= STEPS; step++) {
        size_t mappings = most * step / STEPS;
        cut(region, page, before, mappings, *kind == 't');
        before = mappings;
        for (size_t i = 0; i < per_step; i++, count++) {
            samples[count].x = mappings;
            fork_once(&samples[count]);
        }
    }
    fork_print(samples, count, "mappings");
    free(samples);
    return EXIT_SUCCESS;
}
