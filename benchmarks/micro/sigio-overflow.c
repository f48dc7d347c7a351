/*
 * sigio-overflow: what do the signals of descriptors tell, and what happens when their queue is
 * full?
 *
 * Shows: one line. The queue holds `room` signals (RLIMIT_SIGPENDING, lowered here), and `events`
 * sockets get a message each. Of these are told by a signal: signals; in the order of the events:
 * in_order; lost is the rest. overflow: how many plain SIGIO came. poll_finds: what poll() finds
 * afterwards.
 * after_default, after_ignore: of a full queue, the signals that are still there when the action of
 * the signal was set to SIG_DFL, or to SIG_IGN. closed: signals of descriptors that were closed
 * before these were taken.
 * in_band, in_revents: si_band of the signal, and revents of poll(), when a message has come;
 * hup_band, hup_revents: when the other end of a stream was closed.
 * Source: fcntl(2), F_SETSIG; sigaction(2); POSIX on SIG_IGN for a pending signal.
 * Needs: two descriptors an event.
 * Run:   sigio-overflow -q 100 -n 150
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

#define MAX_EVENTS 5000

struct pairs {
    int (*ends)[2]; /* the one that is waited for, its peer */
    size_t count;
};

/* What a queue held. */
struct drained {
    size_t signals;
    size_t in_order; /* signals whose descriptor is higher than that of the one before */
    size_t overflow; /* SIGIO */
};

static sigset_t both; /* blocked: the signal of the descriptors, and SIGIO */
static int signal_number;

static void block_signals(void)
{
    signal_number = SIGRTMIN + 1;
    sigemptyset(&both);
    sigaddset(&both, SIGIO);
    sigaddset(&both, signal_number);
    if (sigprocmask(SIG_BLOCK, &both, NULL) == -1)
        die_errno("sigprocmask");
}

/*
 * The limit counts what is queued for all processes of the user: what others have there now is
 * added.
 */
static void limit_queue(size_t room)
{
    char line[256];
    unsigned long queued;
    struct rlimit limit;
    FILE *status = fopen("/proc/self/status", "r");
    if (status == NULL)
        die(EXIT_UNSUPPORTED, "there is no /proc/self/status");
    do {
        if (fgets(line, sizeof line, status) == NULL)
            die(EXIT_UNSUPPORTED, "/proc/self/status has no line SigQ");
    } while (sscanf(line, "SigQ: %lu", &queued) != 1);
    fclose(status);
    if (getrlimit(RLIMIT_SIGPENDING, &limit) == -1)
        die_errno("getrlimit");
    if (limit.rlim_cur < room + queued)
        die(EXIT_FAILURE, "the queue has no room for %lu signals (ulimit -i)", (unsigned long)room);
    limit.rlim_cur = room + queued;
    if (setrlimit(RLIMIT_SIGPENDING, &limit) == -1)
        die_errno("setrlimit");
}

static void signal_for(int fd)
{
    if (fcntl(fd, F_SETOWN, (int)getpid()) == -1)
        die_errno("fcntl F_SETOWN");
    if (fcntl(fd, F_SETSIG, signal_number) == -1)
        die_errno("fcntl F_SETSIG");
    if (fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC) == -1)
        die_errno("fcntl O_ASYNC");
}

static void open_pair(int pair[2], int type)
{
    if (socketpair(AF_UNIX, type, 0, pair) == -1)
        die_errno("socketpair");
    signal_for(pair[0]);
}

static struct pairs pairs_open(size_t count)
{
    struct pairs p = {samples_new(count, sizeof *p.ends), count};
    for (size_t i = 0; i < count; i++)
        open_pair(p.ends[i], SOCK_DGRAM);
    return p;
}

static void close_fd(int fd)
{
    if (close(fd) == -1)
        die_errno("close");
}

static void send_to(const struct pairs *p, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (send(p->ends[i][1], "", 1, 0) != 1)
            die_errno("send");
}

static void read_from(const struct pairs *p, size_t count)
{
    char byte;
    for (size_t i = 0; i < count; i++)
        if (recv(p->ends[i][0], &byte, 1, MSG_DONTWAIT) != 1)
            die_errno("recv");
}

/* The next signal that is there already; 0: none. */
static int take(siginfo_t *info)
{
    const struct timespec at_once = {.tv_sec = 0};
    int number;
    do {
        number = sigtimedwait(&both, info, &at_once);
    } while (number == -1 && errno == EINTR);
    if (number == -1 && errno != EAGAIN)
        die_errno("sigtimedwait");
    return number == -1 ? 0 : number;
}

/* Of two signals the one with the lower number is taken first: SIGIO. */
static struct drained drain(void)
{
    struct drained d = {.signals = 0};
    siginfo_t info;
    int last = -1, number;
    while ((number = take(&info)) != 0) {
        if (number == SIGIO) {
            d.overflow++;
            continue;
        }
        d.signals++;
        d.in_order += info.si_fd > last;
        last = info.si_fd;
    }
    return d;
}

static size_t readable(const struct pairs *p)
{
    size_t count = 0;
    for (size_t i = 0; i < p->count; i++) {
        struct pollfd wanted = {.fd = p->ends[i][0], .events = POLLIN};
        if (poll(&wanted, 1, 0) == -1)
            die_errno("poll");
        count += (wanted.revents & POLLIN) != 0;
    }
    return count;
}

/* How many of room signals in the queue outlive that the action is set. */
static size_t left_after(const struct pairs *p, size_t room, void (*action)(int))
{
    struct sigaction wanted = {.sa_handler = action}, before;
    send_to(p, room);
    sigemptyset(&wanted.sa_mask);
    if (sigaction(signal_number, &wanted, &before) == -1)
        die_errno("sigaction");
    size_t left = drain().signals;
    if (sigaction(signal_number, &before, NULL) == -1)
        die_errno("sigaction");
    read_from(p, room);
    return left;
}

static size_t told_when_closed(const struct pairs *p, size_t room)
{
    send_to(p, room);
    for (size_t i = 0; i < room; i++)
        close_fd(p->ends[i][0]);
    return drain().signals;
}

/* What signal and poll() say of one descriptor, for a message or for the end of the stream. */
static void tell(int type, long *band, int *revents)
{
    siginfo_t info;
    int pair[2];
    open_pair(pair, type);
    struct pollfd wanted = {.fd = pair[0], .events = POLLIN | POLLRDNORM};
    if (type == SOCK_STREAM)
        close_fd(pair[1]);
    else if (send(pair[1], "", 1, 0) != 1)
        die_errno("send");
    if (take(&info) != signal_number)
        die(EXIT_FAILURE, "no signal came");
    if (poll(&wanted, 1, 0) == -1)
        die_errno("poll");
    *band = info.si_band;
    *revents = wanted.revents;
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "EVENTS", 1, MAX_EVENTS, 150, 0},
        {'q', "ROOM", 1, MAX_EVENTS, 100, 0},
    };
    const struct command_line line = {options, 2, "", 0, 0};
    long in_band, hup_band;
    int in_revents, hup_revents;
    read_command_line(argc, argv, &line);
    size_t events = options[0].value, room = options[1].value;
    if (room > events)
        refuse(&line);

    block_signals();
    struct pairs pairs = pairs_open(events);
    tell(SOCK_DGRAM, &in_band, &in_revents);
    tell(SOCK_STREAM, &hup_band, &hup_revents);
    limit_queue(room);
    send_to(&pairs, events);
    struct drained full = drain();
    size_t found = readable(&pairs);
    read_from(&pairs, events);
    size_t after_default = left_after(&pairs, room, SIG_DFL);
    size_t after_ignore = left_after(&pairs, room, SIG_IGN);
    size_t closed = told_when_closed(&pairs, room);

    puts(
        "events\troom\tsignals\tin_order\tlost\toverflow\tpoll_finds\tafter_default\tafter_ignore\t"
        "closed\tin_band\tin_revents\thup_band\thup_revents");
    printf("%lu\t%lu\t%lu\t%lu\t%lu\t%lu\t%lu\t%lu\t%lu\t%lu\t%ld\t%d\t%ld\t%d\n",
           (unsigned long)events, (unsigned long)room, (unsigned long)full.signals,
           (unsigned long)full.in_order, (unsigned long)(events - full.signals),
           (unsigned long)full.overflow, (unsigned long)found, (unsigned long)after_default,
           (unsigned long)after_ignore, (unsigned long)closed, in_band, in_revents, hup_band,
           hup_revents);
    samples_finish();
    free(pairs.ends);
    return EXIT_SUCCESS;
}
