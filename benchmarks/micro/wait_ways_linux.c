#include "wait_ways.h"

#ifdef __linux__

/*
 * Linux's own: signals that say which descriptor they are for (F_SETSIG, fcntl(2)), collected in
 * three ways, and epoll(7) in three.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

#define BATCH 1024 /* events that one read() or epoll_wait() can give */

static struct {
    sigset_t set; /* blocked: the signal of the descriptors, and SIGIO, which tells of overflow */
    int number;
    int fd; /* of signalfd() */
    struct signalfd_siginfo *batch;
    int *caught; /* by the handler */
    volatile sig_atomic_t count;
} signals;

static struct {
    int fd;
    int most;
    struct epoll_event *batch;
} epoll;

/* ---- signals ------------------------------------------------------------------------------- */

static _Noreturn void overflow(void)
{
    die(EXIT_FAILURE, "the queue of signals is full (ulimit -i)");
}

static void sigio_open(const int *fds, size_t count)
{
    signals.number = SIGRTMIN + 1;
    sigemptyset(&signals.set);
    sigaddset(&signals.set, SIGIO);
    sigaddset(&signals.set, signals.number);
    if (sigprocmask(SIG_BLOCK, &signals.set, NULL) == -1)
        die_errno("sigprocmask");
    for (size_t i = 0; i < count; i++) {
        if (fcntl(fds[i], F_SETOWN, (int)getpid()) == -1)
            die_errno("fcntl F_SETOWN");
        if (fcntl(fds[i], F_SETSIG, signals.number) == -1)
            die_errno("fcntl F_SETSIG");
        if (fcntl(fds[i], F_SETFL, O_NONBLOCK | O_ASYNC) == -1)
            die_errno("fcntl O_ASYNC");
    }
}

/* One signal a call: it does not matter how many there is room for. */
static size_t sigio_wait(int *ready, size_t most, size_t *calls)
{
    const struct timespec patience = {.tv_sec = WAIT_PATIENCE};
    siginfo_t info;
    int number;
    do {
        number = sigtimedwait(&signals.set, &info, &patience);
        ++*calls;
    } while (number == -1 && errno == EINTR);
    if (number == -1 && errno != EAGAIN)
        die_errno("sigtimedwait");
    if (number == SIGIO)
        overflow();
    if (number == -1 || most == 0)
        return 0;
    *ready = info.si_fd;
    return 1;
}

/* May be interrupted by nothing of ours: all signals of the set are blocked meanwhile. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (number == SIGIO || signals.count == BATCH)
        signals.count = -1;
    else if (signals.count >= 0)
        signals.caught[signals.count++] = info->si_fd;
}

static void handler_open(const int *fds, size_t count)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigio_open(fds, count);
    action.sa_mask = signals.set;
    signals.caught = samples_new(BATCH, sizeof *signals.caught);
    if (sigaction(SIGIO, &action, NULL) == -1 || sigaction(signals.number, &action, NULL) == -1)
        die_errno("sigaction");
}

/* What is pending is handled, one after another, before the first call returns. */
static size_t handler_wait(int *ready, size_t most, size_t *calls)
{
    signals.count = 0;
    if (sigprocmask(SIG_UNBLOCK, &signals.set, NULL) == -1 ||
        sigprocmask(SIG_BLOCK, &signals.set, NULL) == -1)
        die_errno("sigprocmask");
    if (signals.count < 0)
        overflow();
    if ((size_t)signals.count > most)
        die(EXIT_FAILURE, "%d signals at once", (int)signals.count);
    memcpy(ready, signals.caught, (size_t)signals.count * sizeof *ready);
    *calls += 2 + (size_t)signals.count;
    return (size_t)signals.count;
}

static void signalfd_open(const int *fds, size_t count)
{
    sigio_open(fds, count);
    signals.fd = signalfd(-1, &signals.set, 0);
    if (signals.fd == -1 || fcntl(signals.fd, F_SETFL, O_NONBLOCK) == -1)
        die_errno("signalfd");
    signals.batch = samples_new(BATCH, sizeof *signals.batch);
}

static size_t signalfd_wait(int *ready, size_t most, size_t *calls)
{
    size_t room = most < BATCH ? most : BATCH;
    ssize_t n = read(signals.fd, signals.batch, room * sizeof *signals.batch);
    ++*calls;
    if (n == -1 && errno != EAGAIN)
        die_errno("read of a signalfd");
    size_t count = n == -1 ? 0 : (size_t)n / sizeof *signals.batch;
    for (size_t i = 0; i < count; i++) {
        if (signals.batch[i].ssi_signo == SIGIO)
            overflow();
        ready[i] = signals.batch[i].ssi_fd;
    }
    return count;
}

/* ---- epoll --------------------------------------------------------------------------------- */

static void epoll_open_for(const int *fds, size_t count, uint32_t events, int most)
{
    epoll.fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll.fd == -1)
        die_errno("epoll_create1");
    for (size_t i = 0; i < count; i++) {
        struct epoll_event event = {.events = events, .data.fd = fds[i]};
        if (epoll_ctl(epoll.fd, EPOLL_CTL_ADD, fds[i], &event) == -1)
            die_errno("epoll_ctl");
    }
    epoll.most = most;
    epoll.batch = samples_new((size_t)most, sizeof *epoll.batch);
}

static void level_open(const int *fds, size_t count)
{
    epoll_open_for(fds, count, EPOLLIN, BATCH);
}

static void edge_open(const int *fds, size_t count)
{
    epoll_open_for(fds, count, EPOLLIN | EPOLLET, BATCH);
}

static void one_open(const int *fds, size_t count)
{
    epoll_open_for(fds, count, EPOLLIN, 1);
}

static size_t epoll_wait_any(int *ready, size_t most, size_t *calls)
{
    int room = most < (size_t)epoll.most ? (int)most : epoll.most;
    int n;
    do {
        n = epoll_wait(epoll.fd, epoll.batch, room, WAIT_PATIENCE * 1000);
        ++*calls;
    } while (n == -1 && errno == EINTR);
    if (n == -1)
        die_errno("epoll_wait");
    for (int i = 0; i < n; i++)
        ready[i] = epoll.batch[i].data.fd;
    return (size_t)n;
}

const struct wait_way system_wait_ways[] = {
    {"sigio", sigio_open, sigio_wait},
    {"sigio-handler", handler_open, handler_wait},
    {"sigio-signalfd", signalfd_open, signalfd_wait},
    {"epoll", level_open, epoll_wait_any},
    {"epoll-edge", edge_open, epoll_wait_any},
    {"epoll-one", one_open, epoll_wait_any},
    {NULL, NULL, NULL},
};

#else

const struct wait_way system_wait_ways[] = {{NULL, NULL, NULL}};

#endif
