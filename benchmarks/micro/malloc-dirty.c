/*
 * malloc-dirty: how much memory does a child stop sharing, because it called malloc() and free()?
 *
 * Shows: after a fork the child asks for `mallocs` blocks of 16 to 512 bytes, writes into none of
 * them, and frees them all. dirty_kib is what it then has that nobody shares (Private_Dirty in
 * proc(5); what free() gave back to the kernel is no longer in it), faults the minor page faults
 * meanwhile, asked_kib what it had asked for. mallocs is 0, 1, 2, 4 ... up to MALLOCS. In a used
 * heap the parent had made 20000 such blocks before the fork and freed every second one, as a
 * program has that has run for a while; in a fresh one only a few.
 * Needs: Linux 4.14 for smaps_rollup (else status 77).
 * Run:   malloc-dirty -n 3 -m 1024 used
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "children.h"
#include "die.h"
#include "micro.h"
#include "watched.h"

#define MAX_SAMPLES  10000
#define MAX_MALLOCS  1000000
#define LEAST_BLOCK  16
#define MOST_BLOCK   512
#define BLOCKS       20000 /* of a used heap: some 5 MB */
#define BLOCKS_FRESH 100   /* the allocator, too, has been called before */
#define PATIENCE     300   /* seconds for the whole run */

/* All in memory that is shared, so that only malloc() and free() make private pages. */
struct work {
    struct cost cost;
    size_t mallocs;
    uint64_t asked; /* bytes */
    int failed;
    void *block[];
};

struct sample {
    size_t mallocs, dirty_kib;
    uint64_t asked, faults;
};

/* The same sizes in every child, run and libc: xorshift32 (Marsaglia 2003). */
static size_t next_size(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return LEAST_BLOCK + *state % (MOST_BLOCK - LEAST_BLOCK + 1);
}

static void use_heap(void *argument)
{
    struct work *work = argument;
    uint32_t state = 2463534242U;
    work->asked = 0;
    for (size_t i = 0; i < work->mallocs; i++) {
        size_t size = next_size(&state);
        work->asked += size;
        work->block[i] = malloc(size);
        work->failed |= work->block[i] == NULL;
    }
    for (size_t i = 0; i < work->mallocs; i++)
        free(work->block[i]);
}

/* Every second block stays for ever, so that the heap keeps its holes. */
static void age_heap(size_t blocks)
{
    static void **block; /* what is still pointed to is no leak */
    block = samples_new(blocks, sizeof *block);
    uint32_t state = 88675123U;
    for (size_t i = 0; i < blocks; i++) {
        size_t size = next_size(&state);
        block[i] = malloc(size);
        if (block[i] == NULL)
            die_errno("malloc");
        memset(block[i], 1, size);
    }
    for (size_t i = 0; i < blocks; i += 2)
        free(block[i]);
}

static void measure(struct sample *sample, struct work *work, const struct children *children)
{
    work->mallocs = sample->mallocs;
    pid_t pid = watched_start(children, use_heap, work, &work->cost);
    sample->dirty_kib = smaps_kib(pid, "Private_Dirty");
    sample->asked = work->asked;
    sample->faults = work->cost.faults;
    watched_end(pid);
    if (work->failed)
        die(EXIT_FAILURE, "malloc failed in a child");
}

static void print_samples(const struct sample *samples, size_t count)
{
    puts("mallocs\tfaults\tdirty_kib\tasked_kib");
    for (size_t i = 0; i < count; i++)
        printf("%lu\t%llu\t%lu\t%.2f\n", (unsigned long)samples[i].mallocs,
               (unsigned long long)samples[i].faults, (unsigned long)samples[i].dirty_kib,
               (double)samples[i].asked / 1024);
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 20, 0},
        {'m', "MALLOCS", 0, MAX_MALLOCS, 4096, 0},
    };
    struct command_line line = {options, 2, "fresh|used", 1, 1};
    const char *heap = read_command_line(argc, argv, &line)[0];
    if (strcmp(heap, "fresh") != 0 && strcmp(heap, "used") != 0)
        refuse(&line);
    size_t per_step = options[0].value, most = options[1].value, count = 0, steps = 0;
    for (size_t mallocs = 0; mallocs <= most; mallocs = mallocs == 0 ? 1 : 2 * mallocs)
        steps++;
    struct sample *samples = samples_new(steps * per_step, sizeof *samples);
    struct work *work = shared_new(sizeof *work + most * sizeof *work->block);
    struct children children;
    children_open(&children, PATIENCE);

    age_heap(*heap == 'u' ? BLOCKS : BLOCKS_FRESH);
    for (size_t mallocs = 0; mallocs <= most; mallocs = mallocs == 0 ? 1 : 2 * mallocs) {
        for (size_t i = 0; i < per_step; i++, count++) {
            samples[count].mallocs = mallocs;
            measure(&samples[count], work, &children);
        }
    }
    print_samples(samples, count);
    free(samples);
    return EXIT_SUCCESS;
}
