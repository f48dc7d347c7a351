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

#define COLLECTORS    2            /* of a backend, and of the helper process (appendix/) */
#define POOL_STACK    (256 * 1024) /* the default is 8 MiB of address space for each thread */
#define SILENT_STEPS  2            /* of -t seconds without the end of any job */
#define LONGEST_STEPS 30           /* of -t seconds, even if other jobs come to an end */
#define GIVEN_UP_MOST 256          /* each holds a descriptor and memory, perhaps a thread */

/* Readable when the loop is to call jobs_take_over(); the number that it holds is not used. */
static int event_fd;

static pthread_mutex_t over_lock = PTHREAD_MUTEX_INITIALIZER; /* of `over` and `over_count` */
static struct list over = EMPTY_LIST(over);
static int over_count;

static void (*collectors[COLLECTORS])(void);

static struct job *first_job(const struct list *queue)
{
    return CONTAINER_OF(queue->next, struct job, node);
}

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
    pthread_mutex_lock(&over_lock);
    list_append(&over, &job->node);
    over_count++;
    pthread_mutex_unlock(&over_lock);
}

void jobs_ring(void)
{
    uint64_t one = 1;

    while (write(event_fd, &one, sizeof one) < 0 && errno != EAGAIN) /* EAGAIN: it is readable */
        if (errno != EINTR) /* the loop would never hear that a job is over */
            die_errno("write eventfd");
}

void job_hand_back(struct job *job)
{
    job_collected(job);
    jobs_ring();
}

static int taken;          /* jobs that jobs_next_over() may still return in this pass */
static long long last_end; /* of any job, by now_ms() */
static long long looked;   /* when jobs_take_over() was last called */
static int given_up;       /* jobs that were given up and are not yet over */

void job_begins(struct job *job)
{
    job->state = UNDER_WAY;
    job->since = now_ms();
}

/* Whether so many steps have passed since then, and the loop has looked in the last of them or
 * later. Else it may have been stopped (Ctrl-Z), and the job may have ended meanwhile. */
static bool have_passed(int steps, long long step, long long since)
{
    return now_ms() - since > steps * step && looked - since >= (steps - 1) * step;
}

bool job_is_lost(const struct job *job)
{
    long long step = job->conn->options->timeout * 1000LL;
    long long silent_since = last_end > job->since ? last_end : job->since;

    if (now_ms() - silent_since >= step)
        jobs_ring(); /* a wake-up may have been lost (backend_posix.c): look again */
    return have_passed(SILENT_STEPS, step, silent_since) ||
           have_passed(LONGEST_STEPS, step, job->since);
}

bool job_give_up_if_lost(struct exchange *x, void (*drop)(struct job *))
{
    struct job *job = x->held;

    if (!job_is_lost(job))
        return false;
    job->conn = NULL;
    job->drop = drop;
    given_up++;
    x->held = NULL;
    x->reply.fd = -1;
    return true;
}

bool job_reply_error(struct exchange *x, int error)
{
    if (x->sent > 0)
        return false;
    x->conn->ops->end(x);
    x->held = NULL;
    reply_errno(&x->reply, NULL, error);
    if (x->conn->options->verbose) /* the line before has the request; this one the new status */
        reply_log(&x->reply, &(struct request){0});
    return true;
}

bool jobs_refused(void)
{
    return given_up >= GIVEN_UP_MOST;
}

void jobs_take_over(void)
{
    uint64_t number;

    looked = now_ms();
    while (read(event_fd, &number, sizeof number) < 0 && errno != EAGAIN)
        if (errno != EINTR) /* the descriptor would stay readable, and the loop never sleep */
            die_errno("read eventfd");
    for (int i = 0; i < COLLECTORS && collectors[i] != NULL; i++)
        collectors[i]();
    pthread_mutex_lock(&over_lock);
    taken = over_count;
    pthread_mutex_unlock(&over_lock);
}

struct conn *jobs_next_over(void)
{
    for (; taken > 0; taken--) {
        pthread_mutex_lock(&over_lock);
        struct job *job = first_job(&over);
        list_remove(&job->node);
        over_count--;
        pthread_mutex_unlock(&over_lock);
        if (job->state == UNDER_WAY) /* else IDLE: helper.c gave it up, which is no end of a job */
            last_end = now_ms();
        job->state = OVER;
        if (job->conn != NULL) {
            taken--;
            return job->conn;
        }
        given_up--;
        job->drop(job);
    }
    return NULL;
}

struct pool {
    pthread_mutex_t lock; /* of the queue */
    pthread_cond_t not_empty;
    struct list queue;
};

static void *pool_work_loop(void *arg)
{
    struct pool *pool = arg;

    for (;;) {
        pthread_mutex_lock(&pool->lock);
        while (list_is_empty(&pool->queue))
            pthread_cond_wait(&pool->not_empty, &pool->lock);
        struct job *job = first_job(&pool->queue);
        list_remove(&job->node);
        pthread_mutex_unlock(&pool->lock);
        job->run(job);
        job_hand_back(job);
    }
    return NULL;
}

void pool_run(struct pool *pool, struct job *job)
{
    job_begins(job);
    pthread_mutex_lock(&pool->lock);
    list_append(&pool->queue, &job->node);
    pthread_cond_signal(&pool->not_empty);
    pthread_mutex_unlock(&pool->lock);
}

/* The threads block all signals, so none interrupts their reads. */
static void pool_start_threads(struct pool *pool, int threads)
{
    pthread_attr_t detached;
    pthread_t thread;
    sigset_t all, before;
    int started = 0;

    sigfillset(&all);
    errno = pthread_attr_init(&detached); /* pthread functions return their errors */
    if (errno == 0)
        errno = pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (errno == 0)
        errno = pthread_attr_setstacksize(&detached, POOL_STACK);
    if (errno == 0)
        errno = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (errno != 0)
        die_errno("attributes of threads");
    while (errno == 0 && started < threads)
        if ((errno = pthread_create(&thread, &detached, pool_work_loop, pool)) == 0)
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
    list_init(&pool->queue);
    pthread_mutex_init(&pool->lock, NULL); /* with default attributes these do not fail on Linux */
    pthread_cond_init(&pool->not_empty, NULL);
    pool_start_threads(pool, threads);
    return pool;
}
