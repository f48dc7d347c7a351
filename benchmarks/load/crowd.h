/*
 * The crowd: clients that are not measured, but load the server in ways of their own.
 *
 *   slow       sends its request one byte at a time and reads the reply one byte at a time
 *   slow read  sends its request at once and reads the reply one byte at a time
 *   half-dead  sends half of a request head, then nothing
 *   idle       connects and sends nothing
 *
 * Each keeps going: when it is finished or dropped it connects again after a pause. What happens
 * to it is counted here and nowhere else. Beside a load they are in hammer's one process; without
 * one they are in processes of their own (herd.h), whose reports are added up.
 */
#ifndef HAMMER_CROWD_H
#define HAMMER_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "options.h"

struct engine;
struct crowd_member;

/* Counts of the whole run, except `established` and `held`. */
struct crowd_report {
    uint64_t wanted;
    uint64_t established; /* connected when the load began, or all attempts were decided */
    uint64_t refused;     /* failed attempts to connect */
    uint64_t timed_out;   /* attempts to connect that took longer than -t */
    uint64_t served;      /* complete 2xx replies */
    uint64_t answered;    /* anything else that the server sent */
    uint64_t dropped;     /* connections the server ended without a reply */
    uint64_t reset;       /* those of them that it ended by a reset */
    uint64_t reconnects;
    uint64_t held;          /* connected at the end */
    uint64_t first_loss_ns; /* since the start: first and last of what is not served; 0: none */
    uint64_t last_loss_ns;
};

/* One more refused, timed out, answered or dropped, `at` ns after the start. */
void crowd_report_loss(struct crowd_report *report, uint64_t at);

/* What several processes have seen, as if it were one. */
void crowd_report_add(struct crowd_report *sum, const struct crowd_report *report);

struct crowd {
    struct crowd_report reports[CROWD_KINDS];
    struct crowd_member *members; /* owned */
    size_t count;
    size_t joined;    /* members that have begun their first attempt */
    size_t unsettled; /* members whose first attempt to connect is undecided */
    uint64_t begun;
    double join_ns; /* from one to the next; 0: all begin at once */
    struct deadline_queue drips;
    struct deadline_queue timeouts; /* of connecting */
    uint64_t random;                /* apart, so that the measured choice of URLs stays the same */
};

/* So many of each kind. 0, or -1 with errno ENOMEM. */
int crowd_init(struct engine *engine, const uint64_t wanted[CROWD_KINDS]);

/* Starts to connect them: all, or as many a second as --ramp says. */
void crowd_begin(struct engine *engine, uint64_t now);

/* Has the first attempt of each succeeded or failed? */
bool crowd_is_settled(const struct crowd *crowd);

/* How many of a kind are connected. */
uint64_t crowd_connected(const struct crowd *crowd, enum crowd_kind kind);

/* Notes in the reports how many are connected now: `established`, and at the end `held`. */
void crowd_note_established(struct crowd *crowd);
void crowd_note_held(struct crowd *crowd);

void crowd_on_event(struct engine *engine, struct crowd_member *member);

/* Does what is due, and tells when something will be due next (CLOCK_NEVER: nothing). */
void crowd_expire(struct engine *engine, uint64_t now);
uint64_t crowd_next(const struct crowd *crowd);

/*
 * Ends them with a reset: the usual close would leave each port of a large crowd in TIME_WAIT for a
 * minute, on our side because we close first.
 */
void crowd_hang_up(struct crowd *crowd);

void crowd_free(struct crowd *crowd);

#endif
