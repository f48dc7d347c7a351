/*
 * job.h: something that has to wait for the disk, and is done by somebody who may: a thread of a
 * pool, the kernel, another process. The loop, which may not, goes on, and is told: jobs_fd()
 * becomes readable.
 *
 * A job belongs to the connection that waits for it, not to the thread that does it, and is freed
 * only after it is over. A connection with a job under way waits, and nothing ends it then: so the
 * descriptors and the memory that the job uses are still there. A disk may never answer, though: a
 * connection that has waited too long gives its job up, with all that the job uses, and goes on.
 */
#ifndef JOB_H
#define JOB_H

#include <stdbool.h>
#include <sys/types.h>

#include "05b-nonblocking/conn.h"

struct job {
    struct job *next;                     /* in whatever queue it is */
    struct conn *conn;                    /* for whom; NULL: given up */
    void (*run)(struct job *);            /* what a thread does */
    void (*drop)(struct job *);           /* once it is given up and over: frees it */
    long long since;                      /* UNDER_WAY since then, by now_ms() */
    enum { IDLE, UNDER_WAY, OVER } state; /* for the loop alone, as all below conn */
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

/* It is handed to the thread, or the kernel, that does it. */
void job_begins(struct job *job);

/* Hands a job over as done: from any thread. */
void job_is_over(struct job *job);

/*
 * Of a job that is under way: has its connection waited long enough? That is twice the -t seconds
 * of a client while no job at all came to an end, or thirty times whatever the others had. (It is
 * asked every -t seconds.) Then give it up: from now on all that the job uses is its own, and
 * drop() frees that when it is over, if ever.
 */
bool job_is_lost(const struct job *job);
void job_give_up(struct job *job, void (*drop)(struct job *));

/* So many have been given up that none shall be begun before some of them are over. */
bool jobs_refused(void);

/*
 * Besides threads, the kernel or a process may do jobs. `collect` is called by jobs_take_over(),
 * and hands over what they have done by job_collected(). jobs_ring() has it called.
 */
void jobs_collect_by(void (*collect)(void));
void job_collected(struct job *job);
void jobs_ring(void);

/* So many threads with one queue, or as many as there is room for, after a line that says so. That
 * none can be had ends the program. */
struct pool;
struct pool *pool_start(int threads);
void pool_run(struct pool *pool, struct job *job); /* job->run, in one of them; sets its state */

#endif
