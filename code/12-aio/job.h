/*
 * job.h: work that has to wait for the disk. A thread of a pool does it, or the kernel, or another
 * process; the loop goes on meanwhile. When a job is over jobs_fd() becomes readable.
 *
 * x->held of an exchange points to its job. While the job is UNDER_WAY it uses the file or the
 * memory of the exchange, so the connection must not be ended. The job of a look-up is freed by
 * find() (struct conn_ops) when it has the result; that of the body by end(), when the exchange
 * ends. A disk may never answer. So a connection that has waited too long gives its job up: the job
 * then owns what it uses. The client is sent a 503, or loses its connection if a part of the reply
 * is sent.
 */
#ifndef JOB_H
#define JOB_H

#include <stdbool.h>
#include <sys/types.h>

#include "05b-nonblocking/conn.h"
#include "list.h"

struct job {
    struct list node;              /* in a queue, or in the list of those that are over */
    struct conn *conn;             /* that waits for it; NULL: given up */
    void (*run)(struct job *job);  /* what a thread of a pool calls */
    void (*drop)(struct job *job); /* of a job that was given up and is over: frees what it uses */
    long long since;               /* UNDER_WAY since then, by now_ms() */
    enum { IDLE, UNDER_WAY, OVER } state; /* only the loop reads and writes it */
};

/* Before any other call here. Ends the program if it fails. */
void jobs_init(void);

/*
 * The loop watches jobs_fd(). When that is readable it calls jobs_take_over() once, which asks the
 * collectors (below) and fixes how many jobs are over for this pass. Then it calls jobs_next_over()
 * until that returns NULL: each call returns the connection of another job that is over, the oldest
 * first, and calls drop() for jobs that were given up. Jobs that come to an end meanwhile wait for
 * the next pass.
 */
int jobs_fd(void);
void jobs_take_over(void);
struct conn *jobs_next_over(void);

/* Called by the loop when it hands the job to a thread or to the kernel. */
void job_begins(struct job *job);

/* Hands a job that is done back to the loop; from any thread. */
void job_hand_back(struct job *job);

/*
 * Whether the connection of a job that is UNDER_WAY has waited long enough: twice -t seconds in
 * which no job at all came to an end, or thirty times -t seconds. It is asked at least every -t
 * seconds, when the connection's deadline passes, and at each event of its socket; so a client has
 * waited up to three times -t seconds when it is told.
 */
bool job_is_lost(const struct job *job);

/* If the job x->held is lost, gives it up and returns true: the job owns the reply's file and all
 * else that it uses (x->held is NULL now, x->reply.fd -1). drop() is called when the job is over,
 * which may be never. */
bool job_give_up_if_lost(struct exchange *x, void (*drop)(struct job *));

/* After a job that failed. If no byte of the reply is out: calls end(), puts `error` in its place,
 * returns true. Else false: Content-Length is out, so the connection must be closed. */
bool job_reply_error(struct exchange *x, int error);

/* True while 256 jobs that were given up are not over: no other job may begin. */
bool jobs_refused(void);

/*
 * For jobs that no thread of ours does. jobs_take_over() calls `collect`, which calls
 * job_collected() for each job that is done. jobs_ring() makes the loop call jobs_take_over(), from
 * any thread. At most two collectors: one of a backend, one of the helper process.
 */
void jobs_collect_by(void (*collect)(void));
void job_collected(struct job *job);
void jobs_ring(void);

/* Threads with one queue; they never end. If fewer can be had a line on stderr says so; if none,
 * the program ends. pool_run() begins the job: one of them calls job->run() and hands it back. */
struct pool;
struct pool *pool_start(int threads);
void pool_run(struct pool *pool, struct job *job);

#endif
