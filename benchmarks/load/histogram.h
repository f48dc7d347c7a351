/*
 * A log-linear histogram of nanoseconds, in the manner of HdrHistogram.
 *
 * Each power of two is cut into 1024 equal buckets, so a bucket is never wider than 1/1024 of
 * the values in it: three significant digits. Values below 2048 are kept exactly. Recording is
 * a shift and an increment; no memory is ever allocated.
 */
#ifndef HAMMER_HISTOGRAM_H
#define HAMMER_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HISTOGRAM_SUB_BITS = 10,
    HISTOGRAM_SUB = 1 << HISTOGRAM_SUB_BITS,
    HISTOGRAM_MAX_BITS = 43, /* from 2^43 ns (2.4 hours) on values share the last bucket */
    HISTOGRAM_BUCKETS = (HISTOGRAM_MAX_BITS - HISTOGRAM_SUB_BITS + 1) * HISTOGRAM_SUB
};

/* All zero is a valid empty histogram. count, sum, min and max are exact. */
struct histogram {
    uint64_t count;
    uint64_t sum;
    uint64_t min;
    uint64_t max;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_record(struct histogram *h, uint64_t value);

/*
 * The value at `permille` (500 = median) by nearest rank: the middle of the bucket that holds
 * the ceil(count * permille / 1000)-th smallest value, and never outside min..max. 0 if empty.
 */
uint64_t histogram_quantile(const struct histogram *h, unsigned permille);

/*
 * Are there samples enough for this quantile to mean something? 1 for the median, 10 for p90,
 * 100 for p99 (so that it is not the maximum under another name), 10 000 from p99.9 on.
 */
bool histogram_has_quantile(const struct histogram *h, unsigned permille);

/* The arithmetic mean, 0 if empty. */
double histogram_mean(const struct histogram *h);

/* The smallest value that falls into bucket `index`. */
uint64_t histogram_lower(size_t index);

/* The bucket of `value`. */
size_t histogram_index(uint64_t value);

#endif
