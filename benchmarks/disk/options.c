/* Command lines; see options.h. */
#include "options.h"

#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTION_EXPIRE = 256,
    OPTION_CAPACITY,
    OPTION_SPREAD,
    OPTION_FRAGMENT,
    OPTION_METADATA,
    OPTION_CACHE,
    OPTION_KEEP,
    OPTION_DIRECTORIES,
    OPTION_SPEED,
    OPTION_LIST,
    OPTION_ALLOW_OTHER,
    OPTION_SEED,
    OPTION_PARTS,
    OPTION_SORTED,
    OPTION_SEEK
};

static const char disk_usage[] =
    "the disk:\n"
    "  -s, --spindles N      disks that each hold everything, RAID 1 (default 2)\n"
    "      --rpm N           revolutions a minute (default 7200)\n"
    "      --seek T,A,F      ms from track to track, on average, for the full stroke\n"
    "                        (default 1,8.5,18)\n"
    "  -r, --rate MB/S       transfer, in millions of bytes (default 30)\n"
    "      --capacity GB     thousands of millions of bytes (default 160)\n"
    "      --scheduler NAME  fifo (default) or elevator\n"
    "      --expire MS       elevator: who has waited longer is served first, now and then\n"
    "                        (default 500; 0: nobody is)\n"
    "      --spread PERCENT  the files lie on so much of the disk (default 50)\n"
    "      --fragment KIB    every file in pieces of so much, all over that part\n"
    "      --cache MB        a cache of so many MiB, of data (default: none)\n"
    "      --metadata HOW    cached (default), or cold: the first look at a file costs a seek\n"
    "      --directories N   of each pool (default 256)\n"
    "\n";

static const char pool_usage[] =
    "NAME=COUNTxSIZE: files=100000x102400 is files/000/000000 to files/159/099999; SIZE in bytes,\n"
    "or with K, M or G.\n";

static const char museum_usage[] =
    "usage: museum [OPTION]... MOUNTPOINT NAME=COUNTxSIZE...\n"
    "\n"
    "A read-only file system on a disk of 2006: files made up from their names, and the time that\n"
    "it took to read them. Runs until SIGINT or SIGTERM.\n"
    "\n";

static const char museum_options[] =
    "the mount:\n"
    "      --speed X         all of it X times as fast (default 1)\n"
    "      --keep            the kernel's cache keeps files when they are opened again\n"
    "      --allow-other     other users may look into it (root's mount: always)\n"
    "      --list            prints the names of all files and mounts nothing\n"
    "  -h, --help            this text\n"
    "\n"
    "MOUNTPOINT/.statistics holds what the disk has done, as JSON; reading MOUNTPOINT/.phase "
    "tells\n"
    "the same and begins anew. SIGUSR1 prints it on stdout, SIGUSR2 begins anew.\n";

static const char museum_status[] =
    "Exit status: 0, 1 failed, 2 bad usage, 77 no file system in user space can be had here.\n";

static const char model_usage[] =
    "usage: museum-model [OPTION]... NAME=COUNTxSIZE...\n"
    "\n"
    "The disk of museum as arithmetic: so many readers, each of which reads one file after "
    "another,\n"
    "and what the disk gives them. Prints a line for each part of the run.\n"
    "\n";

static const char model_options[] =
    "the readers:\n"
    "  -j, --readers N       so many at once (default 1)\n"
    "  -n, --reads N         files to read, in each part (default 1000)\n"
    "      --parts N         lines to print (default 10); one more part is run before them\n"
    "      --sorted          each part in the order of the files on the platter, not at random\n"
    "      --seed N          of the random order (default 1)\n"
    "  -h, --help            this text\n"
    "\n";

static const struct option long_options[] = {
    {"spindles", required_argument, NULL, 's'},
    {"rpm", required_argument, NULL, 'R'},
    {"seek", required_argument, NULL, OPTION_SEEK},
    {"rate", required_argument, NULL, 'r'},
    {"capacity", required_argument, NULL, OPTION_CAPACITY},
    {"scheduler", required_argument, NULL, 'S'},
    {"expire", required_argument, NULL, OPTION_EXPIRE},
    {"spread", required_argument, NULL, OPTION_SPREAD},
    {"fragment", required_argument, NULL, OPTION_FRAGMENT},
    {"cache", required_argument, NULL, OPTION_CACHE},
    {"metadata", required_argument, NULL, OPTION_METADATA},
    {"directories", required_argument, NULL, OPTION_DIRECTORIES},
    {"speed", required_argument, NULL, OPTION_SPEED},
    {"keep", no_argument, NULL, OPTION_KEEP},
    {"list", no_argument, NULL, OPTION_LIST},
    {"allow-other", no_argument, NULL, OPTION_ALLOW_OTHER},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}};

static const struct option long_model_options[] = {
    {"spindles", required_argument, NULL, 's'},
    {"rpm", required_argument, NULL, 'R'},
    {"seek", required_argument, NULL, OPTION_SEEK},
    {"rate", required_argument, NULL, 'r'},
    {"capacity", required_argument, NULL, OPTION_CAPACITY},
    {"scheduler", required_argument, NULL, 'S'},
    {"expire", required_argument, NULL, OPTION_EXPIRE},
    {"spread", required_argument, NULL, OPTION_SPREAD},
    {"fragment", required_argument, NULL, OPTION_FRAGMENT},
    {"cache", required_argument, NULL, OPTION_CACHE},
    {"metadata", required_argument, NULL, OPTION_METADATA},
    {"directories", required_argument, NULL, OPTION_DIRECTORIES},
    {"readers", required_argument, NULL, 'j'},
    {"reads", required_argument, NULL, 'n'},
    {"parts", required_argument, NULL, OPTION_PARTS},
    {"sorted", no_argument, NULL, OPTION_SORTED},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}};

/* Options with a number, stored as scale * number. */
struct number_option {
    int code;
    const char *name;
    size_t offset;
    bool whole; /* a uint64_t in struct options; else a double */
    double least, most, scale;
};

#define WHOLE(field) offsetof(struct options, field), true
#define REAL(field)  offsetof(struct options, field), false

static const struct number_option number_options[] = {
    {'s', "--spindles", WHOLE(geometry.spindles), 1, MAX_SPINDLES, 1},
    {'R', "--rpm", REAL(geometry.rpm), 1, 1e6, 1},
    {'r', "--rate", REAL(geometry.bytes_per_s), 0.001, 1e6, 1e6},
    {OPTION_CAPACITY, "--capacity", WHOLE(geometry.capacity), 1, 1000000, 1e9},
    {OPTION_EXPIRE, "--expire", REAL(geometry.expire_ms), 0, 1e9, 1},
    {OPTION_SPREAD, "--spread", REAL(spread), 0.001, 100, 1},
    {OPTION_FRAGMENT, "--fragment", REAL(fragment_kib), 4, 1 << 20, 1},
    {OPTION_CACHE, "--cache", REAL(cache_mib), 0, 1 << 20, 1},
    {OPTION_DIRECTORIES, "--directories", WHOLE(directories), 1, 1000000, 1},
    {OPTION_SPEED, "--speed", REAL(speed), 0.001, 10000, 1},
    {'j', "--readers", WHOLE(readers), 1, 100000, 1},
    {'n', "--reads", WHOLE(reads), 1, 10000000, 1},
    {OPTION_PARTS, "--parts", WHOLE(parts), 1, 10000, 1},
    {OPTION_SEED, "--seed", WHOLE(seed), 0, 4294967295.0, 1},
};

static bool parse_number(const char *text, char **end, double *value)
{
    *value = strtod(text, end);
    return *end != text;
}

static bool parse_number_option(struct options *o, const struct number_option *n, char *message,
                                size_t message_size)
{
    char *end;
    double value;
    if (!parse_number(optarg, &end, &value) || *end != '\0' ||
        !(value >= n->least && value <= n->most) ||
        (n->whole && value != (double)(uint64_t)value)) {
        snprintf(message, message_size, "%s: '%s' is not a %snumber from %.10g to %.10g", n->name,
                 optarg, n->whole ? "whole " : "", n->least, n->most);
        return false;
    }
    char *field = (char *)o + n->offset;
    if (n->whole)
        *(uint64_t *)(void *)field = (uint64_t)(value * n->scale);
    else
        *(double *)(void *)field = value * n->scale;
    return true;
}

static bool parse_seek(struct options *o, char *message, size_t message_size)
{
    double *const fields[] = {&o->geometry.track_ms, &o->geometry.average_ms, &o->geometry.full_ms};
    const char *text = optarg;
    for (int i = 0; i < 3; i++) {
        char *end;
        if (!parse_number(text, &end, fields[i]) || !(*fields[i] >= 0 && *fields[i] <= 1e6) ||
            *end != (i < 2 ? ',' : '\0')) {
            snprintf(message, message_size, "--seek: '%s' is not TRACK,AVERAGE,FULL in ms", optarg);
            return false;
        }
        text = end + 1;
    }
    return true;
}

/* One of two words. */
static bool parse_word(const char *option, const char *no, const char *yes, bool *value,
                       char *message, size_t message_size)
{
    *value = strcmp(optarg, yes) == 0;
    if (*value || strcmp(optarg, no) == 0)
        return true;
    snprintf(message, message_size, "%s: '%s' is neither %s nor %s", option, optarg, no, yes);
    return false;
}

static bool parse_scheduler(struct options *o, char *message, size_t message_size)
{
    bool elevator;
    if (!parse_word("--scheduler", "fifo", "elevator", &elevator, message, message_size))
        return false;
    o->geometry.scheduler = elevator ? ELEVATOR : FIFO;
    return true;
}

static bool parse_option(struct options *o, int code, char *message, size_t message_size)
{
    for (size_t i = 0; i < sizeof number_options / sizeof *number_options; i++)
        if (number_options[i].code == code)
            return parse_number_option(o, &number_options[i], message, message_size);
    switch (code) {
    case OPTION_SEEK:
        return parse_seek(o, message, message_size);
    case 'S':
        return parse_scheduler(o, message, message_size);
    case OPTION_METADATA:
        return parse_word("--metadata", "cached", "cold", &o->cold_metadata, message, message_size);
    case OPTION_KEEP:
        return o->keep = true;
    case OPTION_LIST:
        return o->list = true;
    case OPTION_ALLOW_OTHER:
        return o->allow_other = true;
    case OPTION_SORTED:
        return o->sorted = true;
    default: /* getopt_long has written what is wrong */
        return false;
    }
}

/* Is it a pool ("files=100x4K")? Then the MOUNTPOINT was forgotten. A path may hold a "=", too, but
 * no name of a pool has a "/". */
static bool is_pool(const char *word)
{
    const char *equals = strchr(word, '=');
    return equals && !memchr(word, '/', (size_t)(equals - word));
}

static bool parse_pools(struct options *o, bool model, char **words, char *message,
                        size_t message_size)
{
    const char *problem = NULL;
    const char *help = model ? "museum-model -h explains" : "museum -h explains";
    if (!model && !o->list)
        o->mountpoint = *words ? *words++ : NULL;
    if (!model && !o->list && (!o->mountpoint || is_pool(o->mountpoint))) {
        snprintf(message, message_size, "no MOUNTPOINT given (%s)", help);
        return false;
    }
    if (!*words) {
        snprintf(message, message_size, "no pool of files given (%s)", help);
        return false;
    }
    o->files.directories = o->directories;
    o->files.fragment = (uint64_t)(o->fragment_kib * 1024);
    for (; *words; words++) {
        if ((problem = files_add(&o->files, *words)) != NULL) {
            snprintf(message, message_size, "'%s': %s", *words, problem);
            return false;
        }
    }
    problem = geometry_problem(&o->geometry);
    if (!problem)
        problem = files_place(&o->files, o->geometry.capacity, o->spread / 100);
    if (!problem && o->keep && o->cache_mib > 0)
        problem = "--keep and --cache exclude each other: one of two caches decides";
    if (problem)
        snprintf(message, message_size, "%s", problem);
    return problem == NULL;
}

enum options_result options_parse(struct options *o, bool model, int argc, char **argv,
                                  char *message, size_t message_size)
{
    const struct option *known = model ? long_model_options : long_options;
    int code;

    *message = '\0';
    *o = (struct options){.geometry = default_geometry(),
                          .spread = 50,
                          .directories = 256,
                          .speed = 1,
                          .readers = 1,
                          .reads = 1000,
                          .parts = 10,
                          .seed = 1};
    while ((code = getopt_long(argc, argv, model ? "s:r:j:n:h" : "s:r:h", known, NULL)) != -1) {
        if (code == 'h')
            return OPTIONS_HELP;
        if (!parse_option(o, code, message, message_size))
            return OPTIONS_BAD;
    }
    return parse_pools(o, model, argv + optind, message, message_size) ? OPTIONS_RUN : OPTIONS_BAD;
}

void options_usage(FILE *out, bool model)
{
    if (model)
        fprintf(out, "%s%s%s%s", model_usage, disk_usage, model_options, pool_usage);
    else
        fprintf(out, "%s%s%s%s%s", museum_usage, disk_usage, museum_options, pool_usage,
                museum_status);
}
