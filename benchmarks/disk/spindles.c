/* The model in real time; see spindles.h. */
#include "spindles.h"

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#define NS_PER_S 1000000000u

static uint64_t our_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail on Linux */
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t spindles_now(const struct spindles *s)
{
    return (uint64_t)((double)(our_now() - s->epoch) * s->speed);
}

/* Our time of a time of the disk. */
static uint64_t our_time(const struct spindles *s, uint64_t disk)
{
    return s->epoch + (uint64_t)((double)disk / s->speed);
}

static void note(struct spindles *s, uint64_t now)
{
    struct counts counts = disk_counts(&s->disk, now);
    double busy = 0;
    for (size_t i = 0; i < s->disk.geometry.spindles; i++)
        busy += (double)counts.busy_ns[i];
    course_note(&s->course, now, counts.depth_ns, busy);
}

static bool over(const struct spindles *s)
{
    return s->stopping && s->disk.depth == 0;
}

/* Those who wait and need not. */
static void wake(struct spindles *s)
{
    for (size_t i = 0; i < s->running; i++)
        if (s->threads[i].idle && (s->disk.spindle[i].current || over(s)))
            pthread_cond_signal(&s->threads[i].work);
}

/* False: there will be no more. */
static bool await_work(struct spindles *s, struct spindle_thread *t)
{
    t->idle = true;
    while (!s->disk.spindle[t->number].current && !over(s))
        pthread_cond_wait(&t->work, &s->lock);
    t->idle = false;
    return s->disk.spindle[t->number].current != NULL;
}

/* Sleeps until the present request is done. The lock is held before and after, not in between. */
static void sleep_through(struct spindles *s, struct spindle_thread *t)
{
    uint64_t at = our_time(s, s->disk.spindle[t->number].finish);
    struct timespec until = {.tv_sec = (time_t)(at / NS_PER_S), .tv_nsec = (long)(at % NS_PER_S)};
    while (!s->stopping && pthread_cond_timedwait(&t->work, &s->lock, &until) != ETIMEDOUT)
        continue;
    double late = (double)our_now() - (double)at;
    if (s->stopping || late < 0)
        return;
    s->asked.wakes++;
    s->asked.late_ns += late;
    if (late > s->asked.latest_ns)
        s->asked.latest_ns = late;
}

static void *spindle_loop(void *argument)
{
    struct spindle_thread *t = argument;
    struct spindles *s = t->all;

    prctl(PR_SET_TIMERSLACK, 1); /* else the kernel may wake us 50 us late; if refused, it does */
    pthread_mutex_lock(&s->lock);
    while (await_work(s, t)) {
        sleep_through(s, t);
        struct job *job = disk_finish(&s->disk, t->number)->owner;
        note(s, spindles_now(s));
        wake(s);
        if (--job->left == 0) {
            pthread_mutex_unlock(&s->lock);
            s->done(job);
            pthread_mutex_lock(&s->lock);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int start_thread(struct spindles *s, size_t i)
{
    struct spindle_thread *t = &s->threads[i];
    pthread_condattr_t monotonic;
    t->all = s;
    t->number = i;
    int error = pthread_condattr_init(&monotonic);
    if (error == 0) {
        error = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        if (error == 0)
            error = pthread_cond_init(&t->work, &monotonic);
        pthread_condattr_destroy(&monotonic);
    }
    return error ? error : pthread_create(&t->thread, NULL, spindle_loop, t);
}

bool spindles_start(struct spindles *s, const struct geometry *geometry, double speed,
                    void (*done)(struct job *job))
{
    *s = (struct spindles){.speed = speed, .done = done};
    disk_init(&s->disk, geometry);
    s->epoch = our_now();
    course_begin(&s->course, 0);
    errno = pthread_mutex_init(&s->lock, NULL);
    if (errno != 0)
        return false;
    for (size_t i = 0; i < geometry->spindles; i++) {
        int error = start_thread(s, i);
        if (error != 0) {
            spindles_stop(s);
            errno = error;
            return false;
        }
        s->running++;
    }
    return true;
}

void spindles_submit(struct spindles *s, struct job *job)
{
    pthread_mutex_lock(&s->lock);
    uint64_t now = spindles_now(s);
    job->left = job->count;
    for (size_t i = 0; i < job->count; i++) {
        job->requests[i].owner = job;
        disk_submit(&s->disk, &job->requests[i], now);
    }
    note(s, now);
    wake(s);
    pthread_mutex_unlock(&s->lock);
}

struct report spindles_report(struct spindles *s, bool reset)
{
    static struct course
        before; /* what a report shows must outlive the reset; the lock guards it */
    uint64_t now = spindles_now(s);
    note(s, now);
    struct report report = {.seconds = (double)(now - s->disk.reset_at) / NS_PER_S,
                            .spindles = s->disk.geometry.spindles,
                            .counts = disk_counts(&s->disk, now),
                            .asked = s->asked,
                            .course = &s->course};
    if (reset) {
        before = s->course;
        report.course = &before;
        disk_reset_counts(&s->disk, now);
        course_begin(&s->course, now);
        s->asked = (struct asked){.reads = 0};
    }
    return report;
}

void spindles_stop(struct spindles *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    for (size_t i = 0; i < s->running; i++)
        pthread_cond_signal(&s->threads[i].work);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < s->running; i++) {
        pthread_join(s->threads[i].thread, NULL); /* cannot fail: it is ours and joinable */
        pthread_cond_destroy(&s->threads[i].work);
    }
    pthread_mutex_destroy(&s->lock);
}
