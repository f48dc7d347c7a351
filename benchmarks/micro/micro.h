/*
 * micro.h: what every micro-benchmark needs and none is about: the clock and the options. The
 * programs print raw samples; repetition, order, pinning and statistics belong to the harness.
 */
#ifndef MICRO_H
#define MICRO_H

#include <stddef.h>
#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC, which no adjustment moves back; dies without such a clock. */
uint64_t now_ns(void);

/*
 * How long this thread could have run and had to wait, in all its life, because something else had
 * its processor: the second number of /proc/thread-self/schedstat. -1 where that is not counted.
 */
int64_t waited_ns(void);

/* An option -letter that takes a number from least to most. */
struct number_option {
    char letter;
    const char *what; /* the word for the number in the usage line, in capitals */
    size_t least, most, fallback;
    size_t value; /* what was given, or fallback */
};

/* What a command line may hold: options, then from least to most arguments. */
struct command_line {
    struct number_option *options; /* at most eight */
    size_t count;
    const char *arguments; /* as the usage line shows them; "" for none */
    int least, most;
};

/*
 * Fills in the values of the options and returns the arguments, with NULL behind the last. -h
 * prints the usage, one line, and exits 0; anything else that is wrong prints it and exits 2. Sets
 * program_name.
 */
char **read_command_line(int argc, char *argv[], const struct command_line *line);

/* For an argument the program does not know: prints the usage and exits 2. */
_Noreturn void refuse(const struct command_line *line);

/* For programs whose only option is -n, a number from 1 to max; fallback if it is absent. */
size_t count_option(int argc, char *argv[], const char *what, size_t fallback, size_t max);

/* A zeroed array whose pages are there already: no page fault of it falls into a sample. */
void *samples_new(size_t count, size_t element_size);

/*
 * For a column `error`: "-" for 0, the name of an errno that a lack of something gives (EAGAIN,
 * ENOMEM, ...), else its number as "errno-5". The text lasts until the next call.
 */
const char *error_name(int error);

/* Flushes stdout; dies if a line was lost (disk full, reader gone). */
void samples_finish(void);

#endif
