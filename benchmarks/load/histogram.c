/* Log-linear histogram; the design is described in histogram.h. */
#include "histogram.h"

size_t histogram_index(uint64_t value)
{
    if (value < HISTOGRAM_SUB)
        return (size_t)value;
    if (value >> HISTOGRAM_MAX_BITS)
        return HISTOGRAM_BUCKETS - 1;
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - HISTOGRAM_SUB_BITS;
    return (size_t)(shift * HISTOGRAM_SUB + (value >> shift));
}

uint64_t histogram_lower(size_t index)
{
    if (index < HISTOGRAM_SUB)
        return index;
    size_t shift = index / HISTOGRAM_SUB - 1;
    return (uint64_t)(index - shift * HISTOGRAM_SUB) << shift;
}

void histogram_record(struct histogram *h, uint64_t value)
{
    if (h->count == 0 || value < h->min)
        h->min = value;
    if (value > h->max)
        h->max = value;
    h->count++;
    h->sum += value;
    h->buckets[histogram_index(value)]++;
}

static uint64_t bucket_middle(const struct histogram *h, size_t index)
{
    uint64_t lower = histogram_lower(index);
    /* The last bucket has no upper end: its only honest value is the exact maximum. */
    uint64_t middle =
        index + 1 == HISTOGRAM_BUCKETS ? h->max : lower + (histogram_lower(index + 1) - lower) / 2;
    if (middle < h->min)
        return h->min;
    return middle > h->max ? h->max : middle;
}

uint64_t histogram_quantile(const struct histogram *h, unsigned permille)
{
    if (h->count == 0)
        return 0;
    uint64_t rank = (h->count * permille + 999) / 1000;
    uint64_t seen = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen >= rank && seen > 0)
            return bucket_middle(h, i);
    }
    return h->max;
}

bool histogram_has_quantile(const struct histogram *h, unsigned permille)
{
    if (permille >= 999)
        return h->count >= 10000;
    return h->count > 0 && (permille <= 500 || h->count * (1000 - permille) >= 1000);
}

double histogram_mean(const struct histogram *h)
{
    return h->count ? (double)h->sum / (double)h->count : 0;
}
