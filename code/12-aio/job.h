/*
 * job.h: something that has to wait for the disk, and is done by somebody who may: a thread of a
 * pool, the kernel, another process. The loop, which may not, goes on, and is told: jobs_fd()
 * becomes readable.
 *
 * A job belongs to the one who waits for it, not to the one who does it, and is freed only after
 * it is over. A connection with a job under way waits, and nobody ends it then: so the
 * descriptors and the memory that the job uses are still there.
 */
#ifndef JOB_H
#define JOB_H

#include <stdbool.h>
#include <sys/types.h>

#include "05b-nonblocking/conn.h"

struct job {
    struct job *next;                     /* in whatever queue it is */
    struct conn *conn;                    /* for whom */
    void (*run)(struct job *);            /* what a thread does */
    enum { IDLE, UNDER_WAY, OVER } state; /* for the loop alone */
};

/* Before any other call here. Ends the program if it fails. */
void jobs_init(void);

/*
 * What the loop is to watch for reading, and what it is to call then. jobs_take_over() takes the
 * jobs that are over by now; then jobs_next_over() has their connections, one a call, the oldest
 * job first, and NULL when there is no other. What is over meanwhile is for the next turn.
 */
int jobs_fd(void);
void jobs_take_over(void);
struct conn *jobs_next_over(void);

/* Hands a job over as done: from any thread. */
void job_is_over(struct job *job);

/*
 * Besides threads, the kernel or a process may do jobs. `collect` is called by
 * jobs_take_over(), and hands over what they have done by job_collected().
 */
void jobs_collect_by(void (*collect)(void));
void job_collected(struct job *job);

/* So many threads with one queue, or as many as there is room for, after a line that says so. That
 * none can be had ends the program. */
struct pool;
struct pool *pool_start(int threads);
void pool_run(struct pool *pool, struct job *job); /* job->run, in one of them; sets its state */

#endif
