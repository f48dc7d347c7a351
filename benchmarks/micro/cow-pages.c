/*
 * cow-pages: what does it cost to write to a page that two processes share since a fork?
 *
 * Shows: the parent holds PAGES pages and forks; then the child, or the parent, writes one byte
 * into each of the first `pages` of them, in eleven steps from 0 to PAGES. faults are the minor
 * page faults of whoever wrote, while it wrote, and write_ns the time; dirty_kib is what the child
 * then has that nobody shares (Private_Dirty in proc(5)): its copies, or, if the parent wrote, the
 * originals that are left to it. faults_per_page and page_ns are the two divided by `pages`. With
 * alone there is no child; dirty_kib is "-" then, and so is what would be divided by 0. wait_share,
 * the same in each line, is the part of all write_ns in which the writer waited for its processor.
 * Needs: Linux 4.14 for smaps_rollup (else status 77).
 * Run:   cow-pages -n 3 -p 1000 child
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "micro.h"
#include "resident.h"
#include "watched.h"

#define MAX_SAMPLES 10000
#define MAX_PAGES   10000000
#define STEPS       10
#define PATIENCE    300 /* seconds for the whole run */

enum writer { CHILD, PARENT, ALONE };

struct range {
    char *start, *end;
};

struct sample {
    size_t pages, dirty_kib;
    struct cost cost;
};

static void write_pages(void *argument)
{
    const struct range *range = argument;
    resident_fill(range->start, range->end);
}

static void measure(struct sample *sample, enum writer writer, struct range *range,
                    const struct children *children, struct cost *cost)
{
    if (writer == ALONE) {
        watch(write_pages, range, cost);
    } else {
        pid_t pid = watched_start(children, writer == CHILD ? write_pages : NULL, range, cost);
        if (writer == PARENT)
            watch(write_pages, range, cost);
        sample->dirty_kib = smaps_kib(pid, "Private_Dirty");
        watched_end(pid);
    }
    sample->cost = *cost;
}

static void print_ratio(uint64_t value, size_t pages, const char *end)
{
    if (pages == 0)
        printf("-%s", end);
    else
        printf("%.3f%s", (double)value / (double)pages, end);
}

/*
 * The part of all the time in which the writer waited for a processor; below 0 if that is not
 * known. It is 1 at most: the account is read outside of the clock, and what was waited between the
 * two is no part of the time.
 */
static double wait_share(const struct sample *samples, size_t count)
{
    double waited = 0.0, all = 0.0;
    for (size_t i = 0; i < count; i++) {
        if (samples[i].cost.waited_ns < 0)
            return -1.0;
        waited += (double)samples[i].cost.waited_ns;
        all += (double)samples[i].cost.ns;
    }
    if (all <= 0.0)
        return -1.0;
    return waited < all ? waited / all : 1.0;
}

static void print_samples(const struct sample *samples, size_t count, enum writer writer)
{
    double share = wait_share(samples, count);
    puts("pages\tfaults\twrite_ns\tfaults_per_page\tpage_ns\tdirty_kib\twait_share");
    for (size_t i = 0; i < count; i++) {
        const struct sample *sample = &samples[i];
        printf("%lu\t%llu\t%llu\t", (unsigned long)sample->pages,
               (unsigned long long)sample->cost.faults, (unsigned long long)sample->cost.ns);
        print_ratio(sample->cost.faults, sample->pages, "\t");
        print_ratio(sample->cost.ns, sample->pages, "\t");
        if (writer == ALONE)
            fputs("-\t", stdout);
        else
            printf("%lu\t", (unsigned long)sample->dirty_kib);
        if (share < 0.0)
            puts("-");
        else
            printf("%.4f\n", share);
    }
    samples_finish();
}

static enum writer parse_writer(const char *text, const struct command_line *line)
{
    static const char *const words[] = {"child", "parent", "alone"};
    for (int i = CHILD; i <= ALONE; i++)
        if (strcmp(text, words[i]) == 0)
            return (enum writer)i;
    refuse(line);
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 20, 0},
        {'p', "PAGES", 0, MAX_PAGES, 1000, 0},
    };
    struct command_line line = {options, 2, "child|parent|alone", 1, 1};
    enum writer writer = parse_writer(read_command_line(argc, argv, &line)[0], &line);
    size_t per_step = options[0].value, most = options[1].value, count = 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct sample *samples = samples_new((STEPS + 1) * per_step, sizeof *samples);
    struct cost *cost = shared_new(sizeof *cost);
    cost->ask_waited = waited_ns() != -1;
    struct children children;
    children_open(&children, PATIENCE);

    struct range range = {.start = resident_reserve(most * page, SMALL_PAGES)};
    resident_fill(range.start, range.start + most * page);
    for (size_t step = 0; step <= STEPS; step++) {
        for (size_t i = 0; i < per_step; i++, count++) {
            samples[count].pages = most * step / STEPS;
            range.end = range.start + samples[count].pages * page;
            measure(&samples[count], writer, &range, &children, cost);
        }
    }
    print_samples(samples, count, writer);
    free(samples);
    return EXIT_SUCCESS;
}
