/*
 * What came of the requests: counts, bytes and times. There is one tally for the warm-up and
 * one for the measurement. Times are kept of good fetches only: an error is never a fast sample.
 */
#ifndef HAMMER_TALLY_H
#define HAMMER_TALLY_H

#include <stdint.h>

#include "histogram.h"

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

#endif
