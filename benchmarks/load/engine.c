/* The epoll loop; see run.h. */
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "record.h"

/* One turn handles no more than this, so that time-outs and the schedule get their turn. */
enum { MAX_EVENTS = 128, MAX_DISPATCH = 64 };

enum { REST_MS = 1 };

/* SIGINT and SIGTERM arrive as events, so that no system call is ever interrupted by them. */
static int open_signals(struct engine *e)
{
    sigset_t set;
    uint32_t watched = 0;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    e->signal.role = WATCH_SIGNAL;
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -1;
    e->signal.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (e->signal.fd < 0)
        return -1;
    return watch(e->epoll_fd, e->signal.fd, &e->signal, &watched, EPOLLIN);
}

/*
 * The first signal asks for the summary; from now on the next one ends the process, also one that a
 * shell has told to ignore SIGINT because it runs in the background.
 */
static void on_signal(struct engine *e)
{
    struct signalfd_siginfo info;
    sigset_t set;

    if (read(e->signal.fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    e->outcome.signal = (int)info.ssi_signo;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* The first of the two signals only restarts what it interrupts; the next of either ends us. */
static void ignore_once(int number)
{
    (void)number;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

/*
 * The run has ended by itself, and nobody reads the signals any more. The first must not take the
 * summary away. Without the second a hammer whose output nobody reads could not be ended.
 */
static void release_signals(void)
{
    const struct sigaction once = {.sa_handler = ignore_once, .sa_flags = SA_RESTART};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaction(SIGINT, &once, NULL);
    sigaction(SIGTERM, &once, NULL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int allocate(struct engine *e)
{
    static const uint64_t nobody[CROWD_KINDS];
    size_t n = (size_t)e->options->connections;

    e->clients = calloc(n, sizeof *e->clients);
    e->warm_up = calloc(1, sizeof *e->warm_up);
    e->measured = calloc(1, sizeof *e->measured);
    e->scratch = malloc(SCRATCH_SIZE);
    if (!e->clients || !e->warm_up || !e->measured || !e->scratch)
        return -1;
    for (size_t i = 0; i < n; i++) {
        client_init(&e->clients[i]);
        client_add_free(e, &e->clients[i]);
    }
    /* Without a load the crowd is in the processes of the herd. */
    return crowd_init(e, options_hold_only(e->options) ? nobody : e->options->wanted);
}

int engine_init(struct engine *e, const struct options *options, struct url_list *urls,
                const struct url_list *herd_urls, struct samples *samples, const char **call)
{
    *e = (struct engine){.options = options,
                         .urls = urls,
                         .sources = options->sources,
                         .samples = samples,
                         .signal.fd = -1,
                         .epoll_fd = -1,
                         .random = options->seed};
    deadline_queue_init(&e->timeouts, options->timeout_ns);
    deadline_queue_init(&e->rests, REST_MS * NS_PER_MS);
    *call = "herd: fork"; /* first: the processes inherit what is there */
    if (herd_start(&e->herd, options, urls, herd_urls) < 0)
        return -1;
    *call = "epoll_create1";
    e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (e->epoll_fd < 0)
        return -1;
    *call = "malloc";
    if (allocate(e) < 0)
        return -1;
    *call = "epoll_ctl";
    if (herd_watch(&e->herd, e->epoll_fd) < 0)
        return -1;
    *call = "signalfd";
    if (open_signals(e) < 0)
        return -1;
    /* By default the kernel may wake us 50 us late; an open loop would measure that. */
    *call = "prctl";
    return prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
}

static void handle(struct engine *e, const struct epoll_event *event)
{
    switch (*(enum watch_role *)event->data.ptr) {
    case WATCH_SIGNAL:
        on_signal(e);
        break;
    case WATCH_CLIENT:
        client_on_event(e, event->data.ptr, event->events);
        break;
    case WATCH_CROWD:
        crowd_on_event(e, event->data.ptr);
        break;
    case WATCH_HERD:
        herd_on_event(&e->herd, event->data.ptr);
        break;
    }
}

/* One turn of the loop: waits, then hands out what came. */
static int turn(struct engine *e, uint64_t now, uint64_t until)
{
    struct epoll_event events[MAX_EVENTS];
    int n = watch_wait(e->epoll_fd, events, MAX_EVENTS, now, until);

    if (n < 0)
        return errno == EINTR ? 0 : -1;
    for (int i = 0; i < n; i++)
        handle(e, &events[i]);
    return 0;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void expire(struct engine *e, uint64_t now)
{
    struct deadline *d;

    /* Each gets the clock of its own moment: the time that it took to begin the clients before it
     * must not count as its latency. */
    while ((d = deadline_expired(&e->timeouts, now)))
        client_on_timeout(e, DEADLINE_OWNER(d, struct client), clock_now());
    while ((d = deadline_expired(&e->rests, now)))
        client_next(e, DEADLINE_OWNER(d, struct client), clock_now());
    crowd_expire(e, now);
}

/*
 * Gives requests that are due to clients that are free, a few at a time: while thousands of
 * first connections are made, the replies to the earliest must not wait unread.
 */
static void dispatch(struct engine *e, uint64_t now)
{
    uint64_t intended;
    for (int i = 0; i < MAX_DISPATCH; i++) {
        if (!e->free_first || !schedule_take(&e->schedule, now, &intended))
            return;
        client_begin(e, client_take_free(e), intended, now);
        now = clock_now();
    }
}

static uint64_t next_change(const struct engine *e, uint64_t now)
{
    uint64_t next = schedule_next(&e->schedule, now, e->free_first != NULL);
    next = earlier(next, deadline_next(&e->timeouts));
    next = earlier(next, deadline_next(&e->rests));
    return earlier(next, crowd_next(&e->crowd));
}

static int establish_herd(struct engine *e)
{
    uint64_t begun = clock_now();

    while (!herd_is_settled(&e->herd) && !e->outcome.signal)
        if (turn(e, clock_now(), CLOCK_NEVER) < 0)
            return -1;
    e->herd.settled_ns = clock_now() - begun;
    return 0;
}

/* No load: herd and crowd are there until a signal comes. */
static int hold(struct engine *e, const char **call)
{
    *call = "stdout";
    printf("hammer: holding %" PRIu64 " connections\n", herd_established(&e->herd));
    if (fflush(stdout) == EOF)
        return -1;
    *call = "epoll_wait";
    while (!e->outcome.signal)
        if (turn(e, clock_now(), CLOCK_NEVER) < 0)
            return -1;
    return 0;
}

static int establish_crowd(struct engine *e)
{
    if (!e->outcome.signal)
        crowd_begin(e, clock_now());
    while (!crowd_is_settled(&e->crowd) && !e->outcome.signal) {
        uint64_t now = clock_now();
        crowd_expire(e, now);
        if (!crowd_is_settled(&e->crowd) && turn(e, now, crowd_next(&e->crowd)) < 0)
            return -1;
    }
    crowd_note_established(&e->crowd);
    return 0;
}

static void begin_measuring(struct engine *e, uint64_t now)
{
    schedule_begin_measuring(&e->schedule, now, e->in_flight);
    outcome_begin(&e->outcome);
}

static int drive(struct engine *e)
{
    uint64_t now = clock_now();

    schedule_begin(&e->schedule, e->options, now);
    while (!schedule_is_over(&e->schedule, now, e->in_flight) && !e->outcome.signal) {
        if (!e->schedule.measuring && now >= e->schedule.measure_at)
            begin_measuring(e, now);
        expire(e, now); /* may take its time, with a crowd */
        dispatch(e, clock_now());
        now = clock_now();
        if (turn(e, now, next_change(e, now)) < 0)
            return -1;
        now = clock_now();
    }
    return 0;
}

int engine_run(struct engine *e, const char **call)
{
    *call = "epoll_wait";
    if (establish_herd(e) < 0)
        return -1;
    if (e->herd.failed) {
        herd_finish(&e->herd);
        *call = e->herd.problem;
        errno = 0;
        return -1;
    }
    if (options_hold_only(e->options) && !e->outcome.signal) {
        if (hold(e, call) < 0)
            return -1;
    } else if (establish_crowd(e) < 0 || drive(e) < 0) {
        return -1;
    }
    if (!e->outcome.signal)
        release_signals();
    outcome_end(e);
    return 0;
}

void engine_free(struct engine *e)
{
    for (uint64_t i = 0; e->clients && i < e->options->connections; i++)
        client_free(&e->clients[i]);
    crowd_free(&e->crowd);
    herd_free(&e->herd);
    free(e->clients);
    free(e->warm_up);
    free(e->measured);
    free(e->scratch);
    if (e->signal.fd >= 0)
        close(e->signal.fd);
    if (e->epoll_fd >= 0)
        close(e->epoll_fd);
}
