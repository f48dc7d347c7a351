/*
 * jobs.c: the disk of 12-aio and 15-slashdot, and the threads that wait for it. What a thread does
 * is done here all at once, when its time is over; some disks never answer, until all clients have
 * left. And what is in memory: cached.c of 12-aio, by chance.
 */
#include "12-aio/job.h"
#include "12-aio/cached.h"
#include "sim.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define JOBS  1024
#define POOLS 2

struct pool {
    int threads, busy;
};

static struct pool pools[POOLS];
static int started;

static struct work {
    struct job *job;
    struct pool *pool;
    bool begun;
    long long at;
} work[JOBS]; /* the oldest first */
static int works;

static long long how_long(void)
{
    if (w.phase != CHAOS)
        return pick(20) * MS;
    if (w.disk_dies && one_in(4))
        return NEVER;
    return one_in(10)  ? pick(3 * (unsigned)w.timeout_s) * S
           : one_in(4) ? pick(2000) * MS
                       : pick(20) * MS;
}

static void do_job(struct work done)
{
    struct sock *served = w.served;

    w.served = done.job->conn != NULL ? fds[done.job->conn->fd].sock : NULL;
    TRACE("a thread has done its work for %d", done.job->conn != NULL ? done.job->conn->fd : -1);
    done.job->run(done.job);
    if (w.served != NULL)
        w.served->moved_at = w.now;
    w.served = served;
    job_hand_back(done.job);
}

static void act(void)
{
    bool at_last = w.phase != CHAOS && sockets_held() == 0;

    for (int i = 0; i < works; i++) {
        struct work *k = &work[i];
        if (!k->begun && k->pool->busy < k->pool->threads) {
            k->begun = true;
            k->pool->busy++;
            k->at = w.now + how_long();
        }
        if (k->begun && (k->at <= w.now || at_last)) {
            struct work done = *k;
            memmove(k, k + 1, (size_t)(--works - i) * sizeof *k);
            done.pool->busy--;
            do_job(done);
            i = -1; /* a thread is free */
        } else if (k->begun) {
            due(k->at);
        }
    }
}

static bool is_for(int fd)
{
    for (int i = 0; i < works; i++)
        if (work[i].job->conn != NULL && work[i].job->conn->fd == fd)
            return true;
    return false;
}

static int left(void)
{
    return works;
}

WRAP(struct pool *, pool_start, int threads)
{
    jobs_act = act;
    job_is_for = is_for;
    jobs_left = left;
    pools[started].threads = threads;
    return &pools[started++];
}

WRAP(void, pool_run, struct pool *pool, struct job *job)
{
    if (works == JOBS)
        fault("%d jobs are under way", works);
    TRACE("a thread is to work for %d", job->conn->fd);
    job_begins(job);
    work[works++] = (struct work){.job = job, .pool = pool};
    due(w.now);
}

bool __real_job_give_up_if_lost(struct exchange *x, void (*drop)(struct job *));
WRAP(bool, job_give_up_if_lost, struct exchange *x, void (*drop)(struct job *))
{
    const struct job *job = x->held;
    struct sock *s = fds[x->conn->fd].sock;
    long long waited = w.now / MS - job->since;

    if (!__real_job_give_up_if_lost(x, drop))
        return false;
    TRACE("the work for %d is given up", s->fd);
    if (waited <= 2000LL * w.timeout_s)
        fault("the work for descriptor %d is given up after %lld ms", s->fd, waited);
    s->excuse = "the disk";
    s->moved_at = w.now;
    return true;
}

#define MANY_GIVEN_UP 200 /* 256 in job.c, with those that the loop has not taken over yet */

bool __real_jobs_refused(void);
WRAP(bool, jobs_refused, void)
{
    int given_up = 0;

    if (!__real_jobs_refused())
        return false;
    for (int i = 0; i < works; i++)
        given_up += work[i].job->conn == NULL;
    if (given_up < MANY_GIVEN_UP)
        fault("a job is refused, and only %d were given up", given_up);
    if (w.served != NULL)
        w.served->excuse = "the disk";
    return true;
}

/* ---- what is in memory */

static bool is_cold(void)
{
    errno = EAGAIN;
    return (int)pick(100) < w.cold;
}

const struct open_how *cached_how(int root)
{
    (void)root;
    return NULL;
}

bool cached_is_all(int root)
{
    (void)root;
    return false;
}

int __wrap_open_below(int root, const char *path);
int open_cached(int root, const char *path)
{
    return is_cold() ? -1 : __wrap_open_below(root, path);
}

ssize_t read_cached(int fd, void *buffer, size_t size, off_t offset)
{
    return is_cold() ? -1 : pread(fd, buffer, size, offset);
}

bool is_cached(int fd, off_t from, off_t to)
{
    (void)from, (void)to;
    get_fd(fd, "is_cached()");
    return !is_cold();
}
