/*
 * The disk as a model: spindles that each hold the same data (RAID 1), one queue before them, and
 * a scheduler that says which request is next. It has no threads and no clock: times are given,
 * in nanoseconds of the disk's own time, and what is returned says when a request will be done.
 * So it can be tested, run without sleeping (museum-model), or be slept through (spindles.c).
 *
 * What a request costs a spindle:
 *   seek      by distance, from three numbers of a data sheet: track to track, average, full
 *             stroke. Up to a third of the stroke, the mean distance between two random places
 *             and so what "average" means, it grows with the square root (the arm accelerates all
 *             the way); from there linearly (it coasts)
 *   rotation  half a turn, always: no luck, so that a run can be repeated
 *   transfer  bytes by rate
 * What begins where the head is costs its transfer alone, for the drive has read on into its
 * buffer; what begins a little further on costs the passing of the gap, where that is sooner than
 * a seek. Hence a file that is read in pieces pays for one position, not for each piece.
 *
 * The default disk is one of 2006: 7200 rpm, 160 GB, 8.5 ms average and about 1 ms track to track
 * (Seagate's Barracuda 7200.7, two of which were in lighttpd's test machine; other makers' differ
 * by little); its full stroke is not in the data sheet, and 18 ms is an estimate. The 30 MB/s are
 * lighttpd's figure for one of its disks, less than the outer tracks of the drive give.
 */
#ifndef DISK_MODEL_H
#define DISK_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_SPINDLES = 16 };

enum scheduler {
    FIFO,    /* in order of arrival */
    ELEVATOR /* upwards over the platter, then from its lower end again: one sweep after another */
};

struct geometry {
    uint64_t spindles;
    double rpm;
    double track_ms, average_ms, full_ms; /* of a seek */
    double bytes_per_s;
    uint64_t capacity; /* bytes; the stroke goes over all of them */
    enum scheduler scheduler;
    double expire_ms; /* elevator: who has waited longer is next, now and then; 0: nobody is */
};

/* One stretch of the platter. Its owner keeps it until it is done. */
struct request {
    uint64_t start, length; /* bytes */
    void *owner;            /* not looked at here */

    uint64_t arrived; /* from here on the model's own */
    struct request *next, *previous;
};

/* All of it since the last disk_reset_counts(). */
struct counts {
    uint64_t requests, bytes;
    uint64_t seeks;         /* requests for which the arm had to move, or the turn be awaited */
    uint64_t continuations; /* requests that began where the head was, or a little further on */
    double strokes;         /* head travel of all spindles; 1 is once across the platter */
    double depth_ns;        /* requests there (waiting or in service), times time */
    uint64_t deepest;
    uint64_t busy_ns[MAX_SPINDLES];
};

struct spindle {
    uint64_t head;           /* the byte under it */
    uint64_t start, finish;  /* of the present request; the last one's when it is idle */
    struct request *current; /* NULL: idle */
    unsigned since_oldest;   /* elevator: requests since the last that had waited too long */
};

struct disk {
    struct geometry geometry;
    struct spindle spindle[MAX_SPINDLES];
    struct request *oldest, *newest; /* those that wait */
    uint64_t depth;
    uint64_t counted_to, reset_at;
    struct counts counts;
};

struct geometry default_geometry(void);

/* What is wrong with these numbers; NULL if nothing is. */
const char *geometry_problem(const struct geometry *geometry);

void disk_init(struct disk *disk, const struct geometry *geometry);

/* The parts of a service time, in ns. */
double seek_ns(const struct geometry *geometry, uint64_t distance);
double half_turn_ns(const struct geometry *geometry);
double transfer_ns(const struct geometry *geometry, uint64_t bytes);

/*
 * A request has come. Idle spindles that have something to do now have a `current` and a `finish`:
 * look at all of them.
 */
void disk_submit(struct disk *disk, struct request *request, uint64_t now);

/*
 * The present request of this spindle is done, at its `finish`, even if the caller is late: the
 * next one begins then, or when it came. Returns the request.
 */
struct request *disk_finish(struct disk *disk, size_t spindle);

/* The counters up to now. Busy time includes the begun part of what is in service. */
struct counts disk_counts(struct disk *disk, uint64_t now);
void disk_reset_counts(struct disk *disk, uint64_t now);

#endif
