#include "waits.h"

#include "die.h"

/* dietlibc does not know all of it. */
#if defined(__linux__) && !defined(__dietlibc__)

#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000U

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

const struct way *linux_way_named(const char *name)
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

int set_timer_slack(unsigned long ns)
{
    return prctl(PR_SET_TIMERSLACK, ns, 0, 0, 0);
}

#else

#include <errno.h>

const struct way *linux_way_named(const char *name)
{
    die(EXIT_UNSUPPORTED, "%s: Linux, with glibc or musl, is needed to wait so", name);
}

int set_timer_slack(unsigned long ns)
{
    (void)ns;
    errno = ENOSYS;
    return -1;
}

#endif
