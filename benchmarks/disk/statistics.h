/*
 * What the disk has done since the phase began, and how that went over time. All times are the
 * disk's own: at --speed 10 one second of ours is ten of them.
 */
#ifndef DISK_STATISTICS_H
#define DISK_STATISTICS_H

#include <stdint.h>

#include "cache.h"
#include "model.h"

enum { COURSE_BINS = 240 };

/* Depth and busy time over the phase, in bins: when all are in use they become twice as wide. */
struct course {
    uint64_t begun, noted, width;
    double depth_ns[COURSE_BINS], busy_ns[COURSE_BINS]; /* in each bin */
    double depth_so_far, busy_so_far;
};

void course_begin(struct course *course, uint64_t now);
void course_note(struct course *course, uint64_t now, double depth_ns, double busy_ns);

/* What the file system was asked for. */
struct asked {
    uint64_t reads, bytes; /* READ, and what they brought */
    uint64_t lookups, opens, getattrs;
    double late_ns, latest_ns; /* of our own time: threads that woke after the disk was done */
    uint64_t wakes;
};

struct report {
    double seconds;
    uint64_t spindles;
    struct counts counts;
    struct asked asked;
    uint64_t cache_hits, cache_misses; /* pages */
    const struct course *course;
};

/*
 * One JSON object and a newline; NULL without memory. To be freed. The keys:
 *   seconds          since the phase began
 *   reads bytes      READ requests, and the bytes that they asked for
 *   lookups opens getattrs   requests of these kinds; only a cold lookup costs the disk anything
 *   disk_reads disk_bytes    what the disk did: fragments and cold lookups count by themselves
 *   seeks            of those, for which an arm moved or a turn was awaited
 *   continuations    of those, that began where the head was or a little further on
 *   head_travel      of all spindles, in strokes: 1 is once across the platter
 *   queue_depth      requests waiting or in service, on average over time; iostat: aqu-sz
 *   queue_deepest    the most at once
 *   utilisation      busy share of the time, mean of the spindles; iostat: %util / 100
 *   spindle_utilisation      the same of each
 *   cache_hits cache_misses  pages of --cache
 *   late_ms latest_ms        of our time: how late threads woke for what was done; mean, most
 *   course           [end in seconds, queue_depth, utilisation] of each stretch of the phase
 */
char *report_text(const struct report *report);

#endif
