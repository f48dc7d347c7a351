#include "micro.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "die.h"

uint64_t now_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) == -1)
        die_errno("clock_gettime");
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static void usage(FILE *out, const char *what, size_t fallback, size_t max)
{
    fprintf(out, "usage: %s [-n %s]   (1 to %lu, default %lu)\n", program_name, what,
            (unsigned long)max, (unsigned long)fallback);
}

/* 0 stands for "not a number from 1 to max": strtoul takes signs and blanks, we do not. */
static size_t parse_count(const char *text, size_t max)
{
    char *end;
    if (*text < '0' || *text > '9')
        return 0;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || *end != '\0' || value > max)
        return 0;
    return value;
}

size_t count_option(int argc, char *argv[], const char *what, size_t fallback, size_t max)
{
    size_t count = fallback;
    int option;
    set_program_name(argv[0]);
    while ((option = getopt(argc, argv, "n:h")) != -1) {
        if (option == 'h') {
            usage(stdout, what, fallback, max);
            exit(EXIT_SUCCESS);
        }
        if (option == 'n')
            count = parse_count(optarg, max);
        if (option != 'n' || count == 0) {
            usage(stderr, what, fallback, max);
            exit(EXIT_USAGE);
        }
    }
    if (optind != argc) {
        usage(stderr, what, fallback, max);
        exit(EXIT_USAGE);
    }
    return count;
}

void *samples_new(size_t count, size_t element_size)
{
    void *samples = calloc(count, element_size);
    if (samples == NULL)
        die_errno("calloc");
    /* calloc may hand out pages that exist only once they are written to. */
    memset(samples, 0, count * element_size);
    return samples;
}

void samples_finish(void)
{
    if (fflush(stdout) == EOF || ferror(stdout))
        die_errno("write to stdout");
}
