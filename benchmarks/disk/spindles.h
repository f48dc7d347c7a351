/*
 * The model in real time: a thread for each spindle, which sleeps until its request is done.
 *
 * What a thread oversleeps is not lost: the model begins the next request when the last one was
 * done, not when the thread woke. So with work waiting the rate is the model's; a lone reader, who
 * can ask only after the reply, sees the lateness too (some 0.1 ms a request; the report has it).
 */
#ifndef DISK_SPINDLES_H
#define DISK_SPINDLES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "model.h"
#include "statistics.h"

/* Something to answer when its last request is done. The caller's own begins with it. */
struct job {
    size_t left;
    struct request *requests;
    size_t count;
};

struct spindles;

struct spindle_thread {
    struct spindles *all;
    size_t number;
    bool idle; /* waits for work */
    pthread_t thread;
    pthread_cond_t work;
};

struct spindles {
    pthread_mutex_t lock; /* of all that follows, and of what the caller counts */
    struct disk disk;
    struct course course;
    struct asked asked;
    bool stopping;
    double speed;
    uint64_t epoch; /* our time at the disk's 0 */
    void (*done)(struct job *job);
    size_t running;
    struct spindle_thread threads[MAX_SPINDLES];
};

/* False with errno: a thread or a lock could not be had. done() is called by the threads. */
bool spindles_start(struct spindles *spindles, const struct geometry *geometry, double speed,
                    void (*done)(struct job *job));

/* The disk's time. */
uint64_t spindles_now(const struct spindles *spindles);

/* From here on the job belongs to the threads, until done() has it. */
void spindles_submit(struct spindles *spindles, struct job *job);

/* The lock must be held. `reset`: the next phase begins. */
struct report spindles_report(struct spindles *spindles, bool reset);

/* What is still there is answered at once; then the threads end. */
void spindles_stop(struct spindles *spindles);

#endif
