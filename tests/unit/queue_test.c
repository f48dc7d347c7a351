/*
 * queue_test: what threads hand to each other: the queue of 05-pool, and the jobs of 12-aio and
 * 15-slashdot. Many at a time, as nothing is lost only where nobody is in a hurry.
 *
 * Run: build/tsan/queue_test
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "05-pool/queue.h"
#include "12-aio/job.h"
#include "tap.h"

#define THREADS 4
#define ROOM    64
#define ITEMS   200000
#define JOBS    50000

static atomic_long taken, sum;

static void *take_all(void *arg)
{
    struct connection *conn;

    while ((conn = queue_take()) != NULL) {
        sum += conn->fd;
        taken++;
    }
    return arg;
}

static void check_queue(void)
{
    static struct connection conns[ITEMS];
    pthread_t threads[THREADS];

    queue_init(ROOM);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, take_all, NULL) != 0)
            abort();
    for (long i = 0; i < ITEMS; i++) {
        conns[i].fd = (int)i;
        while (i - taken >=
               ROOM - THREADS) /* 05-pool does not accept more than there is room for */
            sched_yield();
        queue_put(&conns[i]);
    }
    for (int tries = 0; taken < ITEMS && tries < 5000; tries++)
        nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
    queue_close();
    for (int i = 0; i < THREADS && taken == ITEMS; i++)
        pthread_join(threads[i], NULL);
    tap_ok(taken == ITEMS, "%ld of %d connections were taken from the queue", (long)taken, ITEMS);
    tap_ok(sum == ITEMS * (ITEMS - 1L) / 2, "each of them once");
}

static atomic_long runs;

static void run(struct job *job)
{
    (void)job;
    runs++;
}

static void check_jobs(void)
{
    static struct job jobs[JOBS];
    static struct conn conn;
    long over = 0;

    jobs_init();
    struct pool *pool = pool_start(THREADS);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.conn = &conn, .run = run};
        pool_run(pool, &jobs[i]);
    }
    for (int tries = 0; over < JOBS && tries < 5000; tries++) {
        jobs_take_over();
        while (jobs_next_over() != NULL)
            over++;
        nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
    }
    tap_ok(runs == JOBS && over == JOBS, "%ld of %d jobs were done, %ld handed over", (long)runs,
           JOBS, over);
    jobs_take_over();
    tap_ok(jobs_next_over() == NULL && jobs[0].state == OVER, "and then there is none left");
}

static int dropped;

static void drop(struct job *job)
{
    (void)job;
    dropped++;
}

/* Jobs of a disk that never answers: so many may wait for it, and then no other begins. */
static void check_given_up(void)
{
    enum { MOST = 256, TIMEOUT_S = 600 };
    static struct job jobs[MOST];
    static struct exchange x;
    const struct options o = {.timeout = TIMEOUT_S};
    struct conn conn = {.options = &o};
    int given_up = 0;

    for (int i = 0; i < MOST; i++) {
        jobs[i].conn = &conn;
        job_begins(&jobs[i]);
        x.held = &jobs[i];
        x.reply.fd = 0;
        if (i == 0)
            tap_ok(!job_give_up_if_lost(&x, drop) && x.held == jobs, "a job of now is waited for");
        jobs[i].since -= 31 * TIMEOUT_S * 1000LL;
        given_up +=
            !jobs_refused() && job_give_up_if_lost(&x, drop) && x.held == NULL && x.reply.fd == -1;
    }
    tap_ok(given_up == MOST && jobs_refused(), "%d are given up, and no other may begin", given_up);
    job_hand_back(&jobs[0]);
    jobs_take_over();
    tap_ok(jobs_next_over() == NULL && dropped == 1 && !jobs_refused(), "until one is over");
}

int main(void)
{
    check_queue();
    check_jobs();
    check_given_up();
    return tap_done();
}
