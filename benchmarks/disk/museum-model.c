/*
 * museum-model: what can the museum disk give, to so many readers?
 *
 * Shows: a line for each part of the run. Nothing sleeps and nothing is read: the times are
 * the model's (model.h), so it is the same on every machine, and it is what the mounted disk is
 * compared with.
 *   files_per_s, mb_per_s  of the readers together
 *   read_ms                mean time for one file, from when it was asked for
 *   utilisation            busy time of the spindles, as a share
 *   queue_depth            requests there, waiting or in service, on average over time
 *   strokes_per_read       how far arms went for a file; 1 is once across the platter
 *   seeks_per_read         requests for which an arm moved or a turn was awaited, for each file
 * Each reader reads a file in pieces of 128 KiB, one after the other, as a kernel without luck
 * would, and then the next. With --metadata cold it is looked up first.
 * Run:   museum-model -j 100 files=100000x102400
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cache.h"
#include "die.h"
#include "options.h"

#define PIECE (128 * 1024)

/* Most pieces that lie apart: those of 4 KiB of a piece that begins within one. */
#define MAX_EXTENTS 33

struct reader {
    struct node file;
    uint64_t offset;
    bool looked_up;
    uint64_t asked_at;
    uint64_t left; /* of the requests it waits for */
    struct request requests[MAX_EXTENTS];
};

struct run {
    const struct options *options;
    struct disk disk;
    struct cache cache;
    struct reader *readers;
    uint64_t *order; /* --sorted: the files of a part, upwards */
    uint64_t drawn;  /* state of the random numbers */
    uint64_t begun, done;
    uint64_t goal; /* files begun */
    double waited_ns;
    uint64_t now;
};

/* splitmix64. */
static uint64_t draw(struct run *run)
{
    uint64_t x = run->drawn += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t next_file(struct run *run)
{
    uint64_t reads = run->options->reads, at = run->begun % reads;
    uint64_t total = run->options->files.total;
    if (!run->order)
        return draw(run) % total;
    if (at == 0) {
        for (uint64_t i = 0; i < reads; i++)
            run->order[i] = draw(run) % total;
        qsort(run->order, reads, sizeof *run->order, compare);
    }
    return run->order[at];
}

static void ask(struct reader *reader, uint64_t start, uint64_t length)
{
    struct request *r = &reader->requests[reader->left++];
    *r = (struct request){.start = start, .length = length, .owner = reader};
}

/* Notes the requests for what comes next of its file; false if there is nothing more. */
static bool ask_next(struct run *run, struct reader *reader)
{
    const struct files *files = &run->options->files;
    if (!reader->looked_up) {
        reader->looked_up = true;
        ask(reader, inode_place(files, reader->file.inode), INODE_BYTES);
        return true;
    }
    while (reader->offset < node_size(&reader->file)) {
        uint64_t from = reader->offset, to = from + PIECE;
        if (to > node_size(&reader->file))
            to = node_size(&reader->file);
        reader->offset = to;
        if (!cache_read(&run->cache, reader->file.inode, &from, &to))
            continue;
        while (from < to) {
            struct extent piece = file_extent(files, &reader->file, from, to - from);
            ask(reader, piece.start, piece.length);
            from += piece.length;
        }
        return true;
    }
    return false;
}

/* Goes on with this reader until it has to wait, or has no file left to begin. */
static void advance(struct run *run, struct reader *reader)
{
    while (!ask_next(run, reader)) {
        run->waited_ns += (double)(run->now - reader->asked_at);
        run->done++;
        if (run->begun == run->goal)
            return;
        reader->file = file_of(&run->options->files, next_file(run));
        reader->offset = 0;
        reader->looked_up = !run->options->cold_metadata;
        reader->asked_at = run->now;
        run->begun++;
    }
    for (uint64_t i = 0, count = reader->left; i < count; i++)
        disk_submit(&run->disk, &reader->requests[i], run->now);
}

/* The busy spindle that is done first; MAX_SPINDLES if all are idle. */
static size_t first_done(const struct disk *disk)
{
    size_t first = MAX_SPINDLES;
    for (size_t i = 0; i < disk->geometry.spindles; i++)
        if (disk->spindle[i].current &&
            (first == MAX_SPINDLES || disk->spindle[i].finish < disk->spindle[first].finish))
            first = i;
    return first;
}

/* Until so many files have been read, since the beginning. */
static void run_until(struct run *run, uint64_t done)
{
    while (run->done < done) {
        size_t i = first_done(&run->disk);
        if (i == MAX_SPINDLES)
            die(EXIT_FAILURE, "the readers have come to rest"); /* begun is less than goal: a bug */
        run->now = run->disk.spindle[i].finish;
        struct reader *reader = disk_finish(&run->disk, i)->owner;
        if (--reader->left == 0)
            advance(run, reader);
    }
}

static void print_part(struct run *run, uint64_t from, uint64_t done)
{
    struct counts c = disk_counts(&run->disk, run->now);
    double ns = (double)(run->now - from), files = (double)(run->done - done), busy = 0;
    if (ns <= 0)
        die(EXIT_FAILURE, "all that was read was cached, and took no time");
    for (size_t i = 0; i < run->options->geometry.spindles; i++)
        busy += (double)c.busy_ns[i];
    printf("%" PRIu64 "\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\n", run->options->readers,
           files / ns * 1e9, (double)c.bytes / ns * 1e3, run->waited_ns / files / 1e6,
           busy / ns / (double)run->options->geometry.spindles, c.depth_ns / ns, c.strokes / files,
           (double)c.seeks / files);
}

static void start(struct run *run)
{
    const struct options *o = run->options;
    /* All readers are still reading when the last part ends. */
    run->goal = (o->parts + 1) * o->reads + o->readers;
    for (uint64_t i = 0; i < o->readers; i++) {
        struct reader *reader = &run->readers[i];
        reader->file = file_of(&o->files, next_file(run));
        reader->looked_up = !o->cold_metadata;
        run->begun++;
        advance(run, reader);
    }
}

static void run_all(struct run *run)
{
    const struct options *o = run->options;
    start(run);
    run_until(run, o->reads);
    puts("readers\tfiles_per_s\tmb_per_s\tread_ms\tutilisation\tqueue_depth\tstrokes_per_read\t"
         "seeks_per_read");
    for (uint64_t i = 0; i < o->parts; i++) {
        uint64_t from = run->now, done = run->done;
        run->waited_ns = 0;
        disk_reset_counts(&run->disk, from);
        run_until(run, (i + 2) * o->reads);
        print_part(run, from, done);
    }
}

int main(int argc, char *argv[])
{
    struct options options;
    char message[256];

    set_program_name(argv[0]);
    switch (options_parse(&options, true, argc, argv, message, sizeof message)) {
    case OPTIONS_HELP:
        options_usage(stdout, true);
        return EXIT_SUCCESS;
    case OPTIONS_BAD:
        if (*message)
            die(EXIT_USAGE, "%s", message);
        return EXIT_USAGE;
    case OPTIONS_RUN:
        break;
    }
    struct run run = {.options = &options, .drawn = options.seed};
    disk_init(&run.disk, &options.geometry);
    run.readers = calloc(options.readers, sizeof *run.readers);
    run.order = options.sorted ? calloc(options.reads, sizeof *run.order) : NULL;
    if (!run.readers || (options.sorted && !run.order) ||
        !cache_init(&run.cache, (uint64_t)(options.cache_mib * 1024 * 1024)))
        die_errno("memory");
    run_all(&run);
    if (fflush(stdout) == EOF || ferror(stdout))
        die_errno("write to stdout");
    cache_free(&run.cache);
    free(run.order);
    free(run.readers);
    return EXIT_SUCCESS;
}
