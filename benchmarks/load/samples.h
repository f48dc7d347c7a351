/*
 * Every measured request as a line of tab-separated values.
 *
 * intended_ns and start_ns count from the beginning of the run (warm-up included); connect_ns,
 * first_byte_ns and total_ns from start_ns. What did not happen is "-": a connect on a reused
 * connection, the first byte of a reply that never came, a status, an error.
 */
#ifndef HAMMER_SAMPLES_H
#define HAMMER_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tally.h"

enum { SAMPLES_BUFFER = 65536, SAMPLES_MAX_LINE = 256 };

struct samples {
    int fd;    /* -1: no samples wanted */
    int error; /* errno of the first failed write; nothing is written after it */
    size_t used;
    char buffer[SAMPLES_BUFFER];
};

struct sample {
    uint64_t intended_ns;
    uint64_t start_ns;
    uint64_t connect_ns;    /* 0: none */
    uint64_t first_byte_ns; /* 0: none */
    uint64_t total_ns;
    int status; /* 0: none */
    uint64_t bytes;
    uint64_t connection; /* which of the -c parallel ones */
    uint64_t url;        /* its place in the list, from 0 */
    enum fetch_error error;
};

/* Opens (truncates) `path` and writes the header line; NULL: none wanted. 0, or -1 and errno. */
int samples_open(struct samples *samples, const char *path);
void samples_write(struct samples *samples, const struct sample *sample);

/* Writes what is buffered and closes. 0, or -1 and errno of the first failure. */
int samples_close(struct samples *samples);

#endif
