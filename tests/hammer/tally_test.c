/* Unit tests of the log-linear histogram: bucket edges, precision, quantiles. */
#include "tally.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

static struct histogram h;

/* Every value lies in its bucket, and no bucket is wider than 1/1024 of its values. */
static bool fits(uint64_t value)
{
    size_t i = histogram_index(value);
    uint64_t lower = histogram_lower(i);
    uint64_t upper = histogram_lower(i + 1);
    uint64_t width = upper - lower;
    return lower <= value && value < upper && (width == 1 || width <= lower / 1024);
}

static void test_buckets(void)
{
    bool small = true;
    bool powers = true;
    bool inverse = true;

    for (uint64_t v = 0; v < 100000; v++)
        small = small && fits(v);
    for (unsigned bit = 1; bit < HISTOGRAM_MAX_BITS; bit++)
        for (int64_t d = -2; d <= 2; d++)
            powers = powers && fits((1ull << bit) + (uint64_t)(d < 0 && bit < 2 ? 0 : d));
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        inverse = inverse && histogram_index(histogram_lower(i)) == i;
    OK(small);
    OK(powers);
    OK(inverse);
    OK(histogram_index(2047) == 2047 && histogram_lower(2047) == 2047);
    OK(histogram_index(2048) == histogram_index(2049));
    OK(histogram_index(UINT64_MAX) == HISTOGRAM_BUCKETS - 1);
    OK(histogram_index((1ull << HISTOGRAM_MAX_BITS) - 1) == HISTOGRAM_BUCKETS - 1);
}

static void test_empty(void)
{
    memset(&h, 0, sizeof h);
    OK(histogram_quantile(&h, 500) == 0);
    OK(histogram_mean(&h) == 0);
    OK(!histogram_has_quantile(&h, 500));
}

static void test_one_value(void)
{
    memset(&h, 0, sizeof h);
    histogram_record(&h, 123456789);
    OK(h.min == 123456789 && h.max == 123456789);
    OK(histogram_quantile(&h, 0) == 123456789);
    OK(histogram_quantile(&h, 500) == 123456789);
    OK(histogram_quantile(&h, 1000) == 123456789);
    OK(histogram_has_quantile(&h, 500) && !histogram_has_quantile(&h, 900));
}

/* 1..1000 is kept exactly, so nearest ranks are exact too. */
static void test_exact_ranks(void)
{
    memset(&h, 0, sizeof h);
    for (uint64_t v = 1000; v >= 1; v--)
        histogram_record(&h, v);
    OK(histogram_quantile(&h, 500) == 500);
    OK(histogram_quantile(&h, 900) == 900);
    OK(histogram_quantile(&h, 990) == 990);
    OK(histogram_quantile(&h, 999) == 999);
    OK(histogram_quantile(&h, 1000) == 1000);
    OK(histogram_mean(&h) == 500.5);
    OK(histogram_has_quantile(&h, 990) && !histogram_has_quantile(&h, 999));
    histogram_record(&h, UINT64_MAX / 4);
    OK(histogram_quantile(&h, 1000) == UINT64_MAX / 4);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Spread over nine powers of ten: each quantile within half a bucket of the sorted truth. */
static void test_against_sorting(void)
{
    enum { N = 20000 };
    static uint64_t values[N];
    static const unsigned permilles[] = {1, 100, 500, 900, 990, 999};
    uint64_t state = 42;
    bool close = true;

    memset(&h, 0, sizeof h);
    for (size_t i = 0; i < N; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        values[i] = (state >> 33) >> (i % 31);
        histogram_record(&h, values[i]);
    }
    qsort(values, N, sizeof *values, compare);
    for (size_t k = 0; k < sizeof permilles / sizeof *permilles; k++) {
        uint64_t exact = values[(N * permilles[k] + 999) / 1000 - 1];
        uint64_t got = histogram_quantile(&h, permilles[k]);
        uint64_t error = got > exact ? got - exact : exact - got;
        close = close && error <= exact / 1024;
    }
    OK(close);
    OK(h.count == N && h.min == values[0] && h.max == values[N - 1]);
    OK(histogram_has_quantile(&h, 999));
}

int main(void)
{
    test_buckets();
    test_empty();
    test_one_value();
    test_exact_ranks();
    test_against_sorting();
    return tap_end();
}
