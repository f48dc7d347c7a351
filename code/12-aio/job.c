#include "12-aio/job.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "die.h"

#define COLLECTORS    2
#define STACK_SIZE    (256 * 1024)
#define SILENT_STEPS  2   /* of -t seconds, without the end of any job: seen at the third */
#define LONGEST_STEPS 30  /* ... whatever comes to an end */
#define GIVEN_UP_MOST 256 /* each may hold a thread, and has a descriptor and memory */

static int event_fd; /* counts what is over and not yet taken */

static pthread_mutex_t over_lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct job *over, **over_end = &over;

static void (*collectors[COLLECTORS])(void);

void jobs_init(void)
{
    event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (event_fd < 0)
        die_errno("eventfd");
}

int jobs_fd(void)
{
    return event_fd;
}

void jobs_collect_by(void (*collect)(void))
{
    for (int i = 0; i < COLLECTORS; i++) {
        if (collectors[i] == NULL) {
            collectors[i] = collect;
            return;
        }
    }
}

void job_collected(struct job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&over_lock);
    *over_end = job;
    over_end = &job->next;
    pthread_mutex_unlock(&over_lock);
}

void jobs_ring(void)
{
    uint64_t one = 1;

    while (write(event_fd, &one, sizeof one) < 0 && errno != EAGAIN) /* after 2^64 jobs: it looks */
        if (errno != EINTR) /* the loop would not hear of this one, nor of any other */
            die_errno("write eventfd");
}

void job_is_over(struct job *job)
{
    job_collected(job);
    jobs_ring();
}

static struct job *taken;  /* what was over when the turn began */
static long long last_end; /* of any job, by now_ms() */
static int given_up;       /* and not yet over */

void job_begins(struct job *job)
{
    job->state = UNDER_WAY;
    job->since = now_ms();
}

bool job_is_lost(const struct job *job)
{
    long long step = job->conn->options->timeout * 1000LL, waited = now_ms() - job->since;
    long long silent = now_ms() - last_end < waited ? now_ms() - last_end : waited;

    if (silent >= step)
        jobs_ring(); /* perhaps it is over, and a notice was lost */
    return silent > SILENT_STEPS * step || waited > LONGEST_STEPS * step;
}

void job_give_up(struct job *job, void (*drop)(struct job *))
{
    job->conn = NULL;
    job->drop = drop;
    given_up++;
}

bool jobs_refused(void)
{
    return given_up >= GIVEN_UP_MOST;
}

void jobs_take_over(void)
{
    uint64_t number;

    while (read(event_fd, &number, sizeof number) < 0 && errno != EAGAIN)
        if (errno != EINTR) /* it would be readable for ever */
            die_errno("read eventfd");
    for (int i = 0; i < COLLECTORS && collectors[i] != NULL; i++)
        collectors[i]();
    pthread_mutex_lock(&over_lock);
    taken = over;
    over = NULL;
    over_end = &over;
    pthread_mutex_unlock(&over_lock);
}

struct conn *jobs_next_over(void)
{
    struct job *job;

    while ((job = taken) != NULL) {
        taken = job->next;
        job->state = OVER;
        last_end = now_ms();
        if (job->conn != NULL)
            return job->conn;
        given_up--;
        job->drop(job);
    }
    return NULL;
}

struct pool {
    pthread_mutex_t lock; /* of the queue */
    pthread_cond_t not_empty;
    struct job *first, **end;
};

static void *work_loop(void *arg)
{
    struct pool *pool = arg;

    for (;;) {
        pthread_mutex_lock(&pool->lock);
        while (pool->first == NULL)
            pthread_cond_wait(&pool->not_empty, &pool->lock);
        struct job *job = pool->first;
        pool->first = job->next;
        if (pool->first == NULL)
            pool->end = &pool->first;
        pthread_mutex_unlock(&pool->lock);
        job->run(job);
        job_is_over(job);
    }
    return NULL;
}

void pool_run(struct pool *pool, struct job *job)
{
    job_begins(job);
    job->next = NULL;
    pthread_mutex_lock(&pool->lock);
    *pool->end = job;
    pool->end = &job->next;
    pthread_cond_signal(&pool->not_empty);
    pthread_mutex_unlock(&pool->lock);
}

/* Signals are for the loop: in a thread they would not wake it. Where there is no room for all
 * threads the pool goes on with those that it has, at least one. */
static void start_threads(struct pool *pool, int threads)
{
    pthread_attr_t detached;
    pthread_t thread;
    sigset_t all, before;
    int started = 0;

    sigfillset(&all);
    errno = pthread_attr_init(&detached); /* these functions return their errors */
    if (errno == 0)
        errno = pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (errno == 0)
        errno = pthread_attr_setstacksize(&detached, STACK_SIZE);
    if (errno == 0)
        errno = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (errno != 0)
        die_errno("attributes of threads");
    while (errno == 0 && started < threads)
        if ((errno = pthread_create(&thread, &detached, work_loop, pool)) == 0)
            started++;
    if (started == 0)
        die_errno("pthread_create");
    if (started < threads)
        warn_errno("pthread_create: %d threads instead of %d", started, threads);
    errno = pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errno != 0)
        die_errno("pthread_sigmask");
    pthread_attr_destroy(&detached);
}

struct pool *pool_start(int threads)
{
    struct pool *pool = malloc(sizeof *pool);

    if (pool == NULL)
        die_errno("malloc");
    *pool = (struct pool){.first = NULL, .end = &pool->first};
    pthread_mutex_init(&pool->lock, NULL); /* with defaults these do not fail on Linux */
    pthread_cond_init(&pool->not_empty, NULL);
    start_threads(pool, threads);
    return pool;
}
