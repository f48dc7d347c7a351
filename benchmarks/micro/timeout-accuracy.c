/*
 * timeout-accuracy: how late is a process woken that asked to wait for a time?
 *
 * Shows: a sample waits MICROSECONDS, with nothing to wait for but the time, in one of these ways:
 *   select, poll, nanosleep, ppoll, epoll_wait, epoll_pwait2
 *            a call with that time
 *   timerfd  a timer is set and then read
 *   event    select() with that time, and an event after half of it
 * late_ns is the time it took less the time it should have: a little of it is the calls and the
 * clock. left_ns is what select() says was left when the event came: Linux changes the time-out
 * that it is given. Elsewhere nothing may, and musl hands the kernel a copy: all is left then.
 * poll() and epoll_wait() count in milliseconds: a time that is no multiple is an error.
 * With -s 1 the slack of the timers is 1 ns; without, what the process was started with, 50000 ns
 * on Linux. After -m LONGEST milliseconds no further sample is begun.
 * Source: "timer slack" in prctl(2), select(2), poll(2), epoll_wait(2), timerfd_create(2),
 * nanosleep(2).
 * Needs: Linux for all but the first three ways, and for -s. A processor that nobody else uses.
 * Run:   timeout-accuracy -n 10 -t 1000 select
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>

/* dietlibc does not know all of it. */
#if defined(__linux__) && !defined(__dietlibc__)
#define LINUX_WAYS 1
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
#endif

#include "die.h"
#include "micro.h"

#define SECOND           1000000000U
#define MAX_SAMPLES      100000
#define MAX_MICROSECONDS 10000000
#define MAX_SLACK        1000000000
#define MAX_LONGEST      60000 /* milliseconds */

struct way {
    const char *name;
    uint64_t unit_ns;         /* the finest step in which a time can be asked for */
    int (*open)(void);        /* makes what wait needs; -1 with errno; may be NULL */
    int (*wait)(uint64_t ns); /* returns when the time is over; -1 with errno */
    uint64_t (*left)(void);   /* if an event ends the wait, after half of the time: what was left */
};

struct sample {
    uint64_t late_ns;
    uint64_t left_ns;
};

static int wait_select(uint64_t ns)
{
    struct timeval time = {.tv_sec = (time_t)(ns / 1000000000U),
                           .tv_usec = (suseconds_t)(ns % 1000000000U / 1000)};
    return select(0, NULL, NULL, NULL, &time);
}

static int wait_poll(uint64_t ns)
{
    return poll(NULL, 0, (int)(ns / 1000000));
}

static int wait_nanosleep(uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000U),
                            .tv_nsec = (long)(ns % 1000000000U)};
    return nanosleep(&time, NULL);
}

#ifdef LINUX_WAYS

static int fd = -1;         /* of the way that was opened */
static struct timeval left; /* what select() has made of its time-out */

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
}

static int wait_ppoll(uint64_t ns)
{
    struct timespec time = timespec_of(ns);
    return ppoll(NULL, 0, &time, NULL);
}

static int open_epoll(void)
{
    return fd = epoll_create1(0);
}

static int wait_epoll(uint64_t ns)
{
    struct epoll_event event;
    return epoll_wait(fd, &event, 1, (int)(ns / 1000000));
}

/* Older C libraries lack the function. The kernel's time has 64 bits on every machine. */
static int wait_epoll_pwait2(uint64_t ns)
{
    struct epoll_event event;
    const long long time[2] = {(long long)(ns / SECOND), (long long)(ns % SECOND)};
    return (int)syscall(SYS_epoll_pwait2, fd, &event, 1, time, NULL, 0);
}

static int open_timer(void)
{
    return fd = timerfd_create(CLOCK_MONOTONIC, 0);
}

static int timer_start(uint64_t ns)
{
    const struct itimerspec time = {.it_value = timespec_of(ns)};
    return timerfd_settime(fd, 0, &time, NULL);
}

static int timer_read(void)
{
    uint64_t expired;
    return read(fd, &expired, sizeof expired) == sizeof expired ? 0 : -1;
}

static int wait_timer(uint64_t ns)
{
    if (timer_start(ns) == -1)
        return -1;
    return timer_read();
}

/* The event is the timer's, after half of the time that select() may wait. */
static int wait_event(uint64_t ns)
{
    fd_set readable;
    FD_ZERO(&readable);
    FD_SET(fd, &readable);
    left = (struct timeval){.tv_sec = (time_t)(ns / SECOND),
                            .tv_usec = (suseconds_t)(ns % SECOND / 1000)};
    if (timer_start(ns / 2) == -1 || select(fd + 1, &readable, NULL, NULL, &left) == -1)
        return -1;
    return timer_read();
}

static uint64_t left_ns(void)
{
    return (uint64_t)left.tv_sec * SECOND + (uint64_t)left.tv_usec * 1000;
}

/* NULL if there is no such way; dies with EXIT_UNSUPPORTED where none of them can be had. */
static const struct way *linux_way_named(const char *name)
{
    static const struct way ways[] = {
        {"ppoll", 1, NULL, wait_ppoll, NULL},
        {"epoll_wait", 1000000, open_epoll, wait_epoll, NULL},
        {"epoll_pwait2", 1, open_epoll, wait_epoll_pwait2, NULL},
        {"timerfd", 1, open_timer, wait_timer, NULL},
        {"event", 1000, open_timer, wait_event, left_ns},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

/* How much later than asked the timers of this thread may expire; -1 with errno. */
static int set_timer_slack(unsigned long ns)
{
    return prctl(PR_SET_TIMERSLACK, ns, 0, 0, 0);
}

#else

static const struct way *linux_way_named(const char *name)
{
    die(EXIT_UNSUPPORTED, "%s: Linux, with glibc or musl, is needed to wait so", name);
}

static int set_timer_slack(unsigned long ns)
{
    (void)ns;
    errno = ENOSYS;
    return -1;
}

#endif

static const struct way *way_named(const char *name)
{
    static const struct way ways[] = {
        {"select", 1000, NULL, wait_select, NULL},
        {"poll", 1000000, NULL, wait_poll, NULL},
        {"nanosleep", 1, NULL, wait_nanosleep, NULL},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return linux_way_named(name);
}

/* A wait that a signal has cut short, as a stop from the terminal does, is no sample. */
static struct sample measure(const struct way *way, uint64_t ns)
{
    uint64_t expected = way->left != NULL ? ns / 2 : ns;
    uint64_t start, took;
    int n;
    do {
        start = now_ns();
        n = way->wait(ns);
        took = now_ns() - start;
    } while (n == -1 && errno == EINTR);
    if (n == -1 && errno == ENOSYS)
        die(EXIT_UNSUPPORTED, "%s: %s", way->name, strerror(ENOSYS));
    if (n == -1)
        die_errno("%s", way->name);
    if (took < expected)
        die(EXIT_FAILURE, "%s: over after %lu ns of %lu", way->name, (unsigned long)took,
            (unsigned long)expected);
    return (struct sample){took - expected, way->left != NULL ? way->left() : 0};
}

static void print_samples(const struct sample *sample, size_t count, const struct way *way)
{
    puts("late_ns\tleft_ns");
    for (size_t i = 0; i < count; i++) {
        printf("%llu", (unsigned long long)sample[i].late_ns);
        if (way->left != NULL)
            printf("\t%llu\n", (unsigned long long)sample[i].left_ns);
        else
            puts("\t-");
    }
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 100, 0},
        {'t', "MICROSECONDS", 1, MAX_MICROSECONDS, 1000, 0},
        {'s', "SLACK", 0, MAX_SLACK, 0, 0},
        {'m', "LONGEST", 1, MAX_LONGEST, MAX_LONGEST, 0},
    };
    const struct command_line line = {
        options, 4, "select|poll|nanosleep|ppoll|epoll_wait|epoll_pwait2|timerfd|event", 1, 1};
    char **words = read_command_line(argc, argv, &line);
    uint64_t ns = options[1].value * (uint64_t)1000;
    unsigned long slack = options[2].value;
    struct sample *samples = samples_new(options[0].value, sizeof *samples);
    size_t count = 0;

    const struct way *way = way_named(words[0]);
    if (way == NULL)
        refuse(&line);
    if (ns % way->unit_ns != 0)
        die(EXIT_FAILURE, "%s cannot be asked for %lu us", way->name,
            (unsigned long)options[1].value);
    if (way->open != NULL && way->open() == -1)
        die_errno("%s", way->name);
    if (slack > 0 && set_timer_slack(slack) == -1)
        die(EXIT_UNSUPPORTED, "timer slack: %s", strerror(errno));

    uint64_t end = now_ns() + options[3].value * (uint64_t)1000000;
    do {
        samples[count++] = measure(way, ns);
    } while (count < options[0].value && now_ns() < end);
    print_samples(samples, count, way);
    free(samples);
    return EXIT_SUCCESS;
}
