/* What is counted of requests: latencies in buckets, outcomes, and each sample for a file. */
#ifndef HAMMER_TALLY_H
#define HAMMER_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A log-linear histogram of nanoseconds, in the manner of HdrHistogram.
 *
 * Each power of two is cut into 1024 equal buckets, so a bucket is never wider than 1/1024 of
 * the values in it: three significant digits. Values below 2048 are kept exactly. Recording is
 * a shift and an increment; no memory is ever allocated.
 */

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

/*
 * What came of the requests: counts, bytes and times. There is one tally for the warm-up and
 * one for the measurement. Times are kept of good fetches only: an error is never a fast sample.
 */

enum fetch_error {
    FETCH_GOOD,
    FETCH_CONNECT_REFUSED,
    FETCH_CONNECT_TIMEOUT,
    FETCH_CONNECT_RESET,
    FETCH_CONNECT_OTHER,
    FETCH_NO_ADDRESS,   /* EADDRNOTAVAIL: no free port, or not an address of this machine */
    FETCH_NO_RESOURCES, /* descriptors or memory of this machine ran out */
    FETCH_RESET,        /* after the connection was established */
    FETCH_TIMEOUT,      /* likewise */
    FETCH_SHORT_REPLY,
    FETCH_BAD_HEAD,
    FETCH_BAD_BODY,
    FETCH_EXCESS,
    FETCH_STATUS, /* complete, but not 2xx */
    FETCH_WRONG_LENGTH,
    FETCH_ERROR_COUNT
};

/* The name used in all output, "good" for FETCH_GOOD. */
const char *fetch_error_name(enum fetch_error error);

enum { STATUS_COUNT = 600 };

struct tally {
    uint64_t finished;                  /* good or not */
    uint64_t errors[FETCH_ERROR_COUNT]; /* [FETCH_GOOD] counts the good ones */
    uint64_t status[STATUS_COUNT];      /* of every complete reply */
    uint64_t busy_ns;                   /* sum of actual start to end, good or not */
    uint64_t body_bytes;                /* of good fetches */
    uint64_t total_bytes;               /* everything received */
    uint64_t opened;                    /* connections established */
    uint64_t reused;                    /* requests sent on a connection that had served one */
    uint64_t closed_by_server;          /* although keep-alive was asked for */
    uint64_t resent;                    /* of those: just when the next request was on its way */
    uint64_t unsolicited;               /* connections with bytes that no request had asked for */
    uint64_t not_closed;                /* the server announced the close, but did not close */
    uint64_t max_lateness_ns;           /* open loop: actual - intended start */
    uint64_t max_own_lateness_ns;       /* of that: with a free connection at hand */
    uint64_t max_waiting;               /* open loop: longest queue */
    struct histogram connect;
    struct histogram first_byte;
    struct histogram total;
    struct histogram from_intended;
};

/* Complete replies with a status from hundreds * 100 to hundreds * 100 + 99. */
uint64_t tally_status_class(const struct tally *tally, unsigned hundreds);

/*
 * Every measured request as a line of tab-separated values.
 *
 * intended_ns and start_ns count from the beginning of the run (warm-up included); connect_ns,
 * first_byte_ns and total_ns from start_ns. What did not happen is "-": a connect on a reused
 * connection, the first byte of a reply that never came, a status, an error.
 */

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
