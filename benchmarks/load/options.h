/* The command line of hammer. */
#ifndef HAMMER_OPTIONS_H
#define HAMMER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "address.h"

enum { MAX_ALLOWED_HOSTS = 16 };

enum crowd_kind { CROWD_SLOW, CROWD_SLOW_READ, CROWD_HALF_DEAD, CROWD_IDLE, CROWD_KINDS };

struct options {
    uint64_t connections;
    uint64_t requests;   /* 0: no limit */
    uint64_t seconds_ns; /* 0: no limit */
    uint64_t warm_up_ns;
    uint64_t timeout_ns;
    double rate; /* requests per second of the open loop; 0: closed loop */
    bool keep_alive;
    bool head;
    bool quickack;
    bool check;
    bool json;
    uint64_t seed;
    uint64_t crowd;                /* of all kinds, by `percent`; included in `wanted` */
    uint64_t percent[CROWD_KINDS]; /* of crowd; what is left of it is idle */
    uint64_t wanted[CROWD_KINDS];
    double ramp; /* connections of the crowd a second; 0: all at once */
    uint64_t herd;
    uint64_t drip_ns;
    const char *samples_path; /* NULL: none */
    const char *url_file;     /* NULL: none */
    char **urls;              /* NULL-terminated, inside argv */
    struct source_list sources;
    struct endpoint allowed[MAX_ALLOWED_HOSTS];
    size_t allowed_count;
};

enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_BAD };

/* Of all kinds. */
uint64_t options_crowd_size(const struct options *options);

/* Without an end crowd and herd are all that is wanted: they are held until a signal comes. */
bool options_hold_only(const struct options *options);

/*
 * On OPTIONS_BAD `message` holds one line, or is empty if getopt has already written its own to
 * stderr. It has 512 bytes: at most 400 of what was given are cited, so that the reason has room.
 * Without --seed the seed comes from the kernel's random numbers.
 */
enum options_result options_parse(struct options *options, int argc, char **argv, char *message,
                                  size_t message_size);

void options_usage(FILE *out);
void options_free(struct options *options);

#endif
