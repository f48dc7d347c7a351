/*
 * fork-memory: how does the time of fork() depend on how much memory the parent holds?
 *
 * Shows: fork_ns, until fork() has returned in the parent; total_ns, until the child, which ends at
 * once, has been waited for. mib is what the parent holds and has written to: 0, 2, 4, 8 ... up to
 * MIB, in pages of 4 KiB (small) or of 2 MiB (huge). A fork() that fails is a line with the errno
 * in column error.
 * Needs: MIB of free memory; for huge a kernel that gives huge pages to who asks for them (else
 * status 77).
 * Run:   fork-memory -n 5 -r 256 small
 */
#include <stdlib.h>
#include <string.h>

#include "children.h"
#include "die.h"
#include "micro.h"
#include "resident.h"
#include "watched.h"

#define MAX_SAMPLES 10000
#define MAX_MIB     65536
#define FIRST_MIB   2 /* one huge page */

/* madvise() is only a wish: with too little contiguous memory, or "never" in sysfs, it fails. */
static void check_huge(size_t mib)
{
    size_t got = smaps_kib(0, "AnonHugePages") * KIB / MIB;
    if (got < mib - mib / 10)
        die(EXIT_UNSUPPORTED, "the kernel gave huge pages for %lu of %lu MiB only",
            (unsigned long)got, (unsigned long)mib);
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 20, 0},
        {'r', "MIB", 0, MAX_MIB, 64, 0},
    };
    struct command_line line = {options, 2, "small|huge", 1, 1};
    const char *pages = read_command_line(argc, argv, &line)[0];
    if (strcmp(pages, "small") != 0 && strcmp(pages, "huge") != 0)
        refuse(&line);
    enum page_size size = *pages == 'h' ? HUGE_PAGES : SMALL_PAGES;
    children_signals();

    size_t per_size = options[0].value, most = options[1].value, count = 0, sizes = 0;
    for (size_t mib = 0; mib <= most; mib = resident_next(mib, FIRST_MIB))
        sizes++;
    struct fork_sample *samples = samples_new(sizes * per_size, sizeof *samples);
    char *memory = resident_reserve(most * MIB, size);
    for (size_t mib = 0, before = 0; mib <= most; mib = resident_next(mib, FIRST_MIB)) {
        resident_fill(memory + before * MIB, memory + mib * MIB);
        before = mib;
        if (size == HUGE_PAGES)
            check_huge(mib);
        for (size_t i = 0; i < per_size; i++, count++) {
            samples[count].x = mib;
            fork_once(&samples[count]);
        }
    }
    fork_print(samples, count, "mib");
    free(samples);
    return EXIT_SUCCESS;
}
