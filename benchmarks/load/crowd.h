/*
 * The crowd: clients that are not measured, but load the server in ways of their own.
 *
 *   slow       sends its request one byte at a time and reads the reply one byte at a time
 *   half-dead  sends half of a request head, then nothing
 *   idle       connects and sends nothing
 *
 * Each keeps going: when it is finished or dropped it connects again after a pause. What happens
 * to it is counted here and nowhere else. (One process can hold as many as it has descriptors;
 * the reports of several processes could be added up.)
 */
#ifndef HAMMER_CROWD_H
#define HAMMER_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deadline.h"

struct engine;
struct crowd_member;

enum crowd_kind { CROWD_SLOW, CROWD_HALF_DEAD, CROWD_IDLE, CROWD_KINDS };

/* Counts of the whole run, except `established` and `held`. */
struct crowd_report {
    uint64_t wanted;
    uint64_t established; /* connected when the load began */
    uint64_t refused;     /* failed attempts to connect */
    uint64_t timed_out;   /* attempts to connect that took longer than -t */
    uint64_t served;      /* complete 2xx replies */
    uint64_t answered;    /* anything else that the server sent */
    uint64_t dropped;     /* connections the server ended without a reply */
    uint64_t reconnects;
    uint64_t held; /* connected at the end */
};

struct crowd {
    struct crowd_report reports[CROWD_KINDS];
    struct crowd_member *members; /* owned */
    size_t count;
    size_t unsettled; /* members whose first attempt to connect is undecided */
    struct deadline_queue drips;
    struct deadline_queue timeouts; /* of connecting */
    uint64_t random;                /* apart, so that the measured choice of URLs stays the same */
};

/* 0, or -1 with errno ENOMEM. */
int crowd_init(struct engine *engine);

/* Starts to connect them all. */
void crowd_begin(struct engine *engine, uint64_t now);

/* Has the first attempt of each succeeded or failed? */
bool crowd_is_settled(const struct crowd *crowd);

/* How many of a kind are connected. */
uint64_t crowd_connected(const struct crowd *crowd, enum crowd_kind kind);

void crowd_on_event(struct engine *engine, struct crowd_member *member);

/* Does what is due, and tells when something will be due next (CLOCK_NEVER: nothing). */
void crowd_expire(struct engine *engine, uint64_t now);
uint64_t crowd_next(const struct crowd *crowd);

void crowd_free(struct crowd *crowd);

#endif
