/* Unit tests of what the micro-benchmarks have in common: the memory for their samples. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "../../benchmarks/micro/micro.h"
#include "tap.h"

#define BYTES (200 * 1024) /* less than a huge page, which would be one fault */
#define PAGES 50           /* of them, if a page has 4 KiB */

static long minor_faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_minflt : -1;
}

int main(void)
{
    volatile uint64_t *samples = samples_new(BYTES / sizeof *samples, sizeof *samples);
    uint64_t sum = 0;
    minor_faults(); /* once before: its own first faults are not of the array */
    long before = minor_faults();
    for (size_t i = 0; i < BYTES / sizeof *samples; i++) {
        sum |= samples[i];
        samples[i] = i;
    }
    long faults = minor_faults() - before;
    tap_ok(before > 0 && faults < PAGES / 2, "%ld page faults in a new array of %d pages", faults,
           PAGES);
    tap_ok(sum == 0, "which was zeroed");
    free((void *)samples);
    return tap_done();
}
