/*
 * micro.h: what every micro-benchmark needs and none is about: the clock and the option -n. The
 * programs print raw samples; repetition, order, pinning and statistics belong to the harness.
 */
#ifndef MICRO_H
#define MICRO_H

#include <stddef.h>
#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC, which no adjustment moves back; dies without such a clock. */
uint64_t now_ns(void);

/*
 * Reads the only option, -n, a number from 1 to max; fallback if it is absent. -h prints the usage
 * and exits 0, anything else that is wrong prints it and exits 2. Sets program_name. what is the
 * word for the number in the usage line, in capitals.
 */
size_t count_option(int argc, char *argv[], const char *what, size_t fallback, size_t max);

/* A zeroed array whose pages are there already: no page fault of it falls into a sample. */
void *samples_new(size_t count, size_t element_size);

/* Flushes stdout; dies if a line was lost (disk full, reader gone). */
void samples_finish(void);

#endif
