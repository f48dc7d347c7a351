/* The command lines of museum and museum-model: what describes the disk is the same in both. */
#ifndef DISK_OPTIONS_H
#define DISK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "files.h"
#include "model.h"

struct options {
    /* the disk */
    struct geometry geometry;
    double spread; /* percent of the platter on which the files lie */
    double fragment_kib;
    double cache_mib;
    bool cold_metadata;
    uint64_t directories;
    struct files files;

    /* museum */
    double speed;
    bool keep;
    bool list;
    bool allow_other;
    const char *mountpoint;

    /* museum-model */
    uint64_t readers;
    uint64_t reads;
    uint64_t parts;
    uint64_t seed;
    bool sorted;
};

enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_BAD };

/*
 * `model`: for museum-model, else for museum. On OPTIONS_BAD `message` holds one line, or is empty
 * if getopt has already written its own to stderr.
 */
enum options_result options_parse(struct options *options, bool model, int argc, char **argv,
                                  char *message, size_t message_size);
void options_usage(FILE *out, bool model);

#endif
