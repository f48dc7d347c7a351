#include "15-slashdot/master.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "end_with_parent.h"
#include "clock.h"
#include "15-slashdot/successor.h"
#include "die.h"
#include "stop.h"

#define MOST_SUCCESSORS 16 /* at a time: one that serves, and those that have retired */
#define PAUSE_MS        1000
#define NEVER           LLONG_MAX

static const int waited_for[] = {SIGTERM, SIGINT, SIGHUP, RETIRE, SIGCHLD, SIGIO}; /* no handler */
static sigset_t ours;

/*
 * The children: first the workers, by number, then places for successors, which are masters of
 * workers of their own. Both understand SIGTERM and RETIRE. All times are by now_ms(): a wait
 * ends whenever a child does, so to count waits is not to count seconds.
 */
struct child {
    pid_t pid; /* not above 0: none */
    long long since;
    long long kill_at; /* once it was told to stop; else NEVER */
};
static struct child *children;
static int own_workers, places;
static int serving = -1; /* the place of the successor that accepts; -1: the workers do */

static struct successor candidate;
static bool candidate_is_wanted;
static long long replace_at; /* when those are started who should be there and are not */

void master_begin(void)
{
    stop_handle(SIGCHLD, SIG_DFL); /* SIG_IGN outlives exec, and nobody could be waited for */
    sigemptyset(&ours);
    for (size_t i = 0; i < sizeof waited_for / sizeof *waited_for; i++)
        sigaddset(&ours, waited_for[i]);
    if (sigprocmask(SIG_BLOCK, &ours, NULL) < 0)
        die_errno("sigprocmask");
}

static bool is_there(int i)
{
    return children[i].pid > 0;
}

static bool all_serve(void)
{
    if (serving >= 0)
        return is_there(serving);
    for (int i = 0; i < own_workers; i++)
        if (!is_there(i))
            return false;
    return true;
}

static void tell(int i, int signum)
{
    if (is_there(i))
        kill(children[i].pid, signum); /* ESRCH: it has ended, and will be waited for */
}

/* All of them have STOP_GRACE seconds, which they keep by themselves (stop_begin()). A successor
 * has workers to wait for, so it has more time than they. */
static void stop(int from, int to)
{
    for (int i = from; i < to; i++) {
        if (!is_there(i) || children[i].kill_at != NEVER)
            continue;
        children[i].kill_at = now_ms() + (STOP_GRACE + (i < own_workers ? 1 : 2)) * 1000;
        tell(i, SIGTERM);
    }
}

static void kill_overdue(void)
{
    for (int i = 0; i < places; i++) {
        if (now_ms() < children[i].kill_at)
            continue;
        tell(i, SIGKILL);
        children[i].kill_at += PAUSE_MS;
    }
}

static void has_ended(pid_t pid, int status)
{
    for (int i = 0; i < places; i++)
        if (children[i].pid == pid)
            children[i] = (struct child){.kill_at = NEVER};
    if (pid == candidate.pid)
        successor_failed(&candidate, status);
}

/* Takes note of those that have ended; returns how many are left. */
static int reap(void)
{
    int left = 0, status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        has_ended(pid, status);
    for (int i = 0; i < places; i++)
        left += is_there(i);
    return left;
}

static long long next_deadline(void)
{
    long long until = replace_at;

    for (int i = 0; i < places; i++)
        if (children[i].kill_at < until)
            until = children[i].kill_at;
    return candidate.pid > 0 && candidate.until < until ? candidate.until : until;
}

/* Returns a signal; -1 if the next deadline is past, or soon. */
static int wait_for_signal(void)
{
    long long until = next_deadline(), left = until - now_ms();
    struct timespec most = {0};

    if (until == NEVER)
        return sigwaitinfo(&ours, NULL);
    if (left > 0)
        most = (struct timespec){.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
    return sigtimedwait(&ours, NULL, &most);
}

/* ---- the next program */

static int free_place(void)
{
    for (int i = own_workers; i < places; i++)
        if (i != serving && !is_there(i))
            return i;
    return -1;
}

static void stop_oldest(void)
{
    int oldest = -1;

    for (int i = own_workers; i < places; i++)
        if (i != serving && (oldest < 0 || children[i].since < children[oldest].since))
            oldest = i;
    stop(oldest, oldest + 1);
}

static void retire(void)
{
    if (serving >= 0)
        tell(serving, RETIRE);
    for (int i = 0; serving < 0 && i < own_workers; i++)
        tell(i, RETIRE);
}

/* From now on it is a child like others. */
static int give_place(pid_t pid)
{
    int i = free_place(); /* there was one when it was started, and nobody else has taken it */

    children[i] = (struct child){.pid = pid, .since = now_ms(), .kill_at = NEVER};
    return i;
}

/* Once in a turn. Until the next program has said that it is ready nobody retires. */
static void succeed(char **argv, const int *fds, int sockets)
{
    pid_t pid = candidate.pid;

    if (pid > 0 && successor_is_ready(&candidate)) {
        retire();
        serving = give_place(pid);
    } else if (pid > 0 && now_ms() >= candidate.until) {
        successor_failed(&candidate, -1);
        int i = give_place(pid);
        stop(i, i + 1);
    }
    if (!candidate_is_wanted || candidate.pid > 0)
        return;
    if (free_place() < 0) { /* SIGHUP faster than clients leave */
        stop_oldest();
        return;
    }
    candidate_is_wanted = false;
    successor_start(&candidate, argv, fds, sockets);
}

/* ---- start, keep, end */

/* Returns true in the child. */
static bool start(int number)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid < 0) /* EAGAIN, ENOMEM: those that run serve on, and this one is tried again */
        warn_errno("fork");
    children[number].pid = pid;
    if (pid != 0)
        return false;
    end_with_parent(parent);
    if (candidate.pid > 0)
        close(candidate.fd);
    return true;
}

/* Whoever is missing is started, but not at once: some die as soon as they live. Returns the number
 * of a new worker in that, -1 in the master. */
static int replace(void)
{
    if (all_serve())
        replace_at = NEVER;
    else if (replace_at == NEVER)
        replace_at = now_ms() + PAUSE_MS;
    if (now_ms() < replace_at)
        return -1;
    for (int i = 0; serving < 0 && i < own_workers; i++)
        if (!is_there(i) && start(i))
            return i;
    candidate_is_wanted |= serving >= 0 && candidate.pid == 0;
    replace_at = now_ms() + PAUSE_MS;
    return -1;
}

static void end_all(bool hurry)
{
    replace_at = NEVER;
    if (candidate.pid > 0) { /* it serves nobody, but may have workers */
        close(candidate.fd);
        give_place(candidate.pid);
        candidate.pid = 0;
    }
    for (;;) {
        if (hurry)
            stop(0, places);
        kill_overdue();
        if (reap() == 0)
            return;
        int signum = wait_for_signal();
        hurry = signum == SIGTERM || signum == SIGINT;
    }
}

static void make_places(int number)
{
    own_workers = number;
    places = own_workers + MOST_SUCCESSORS;
    children = calloc((size_t)places, sizeof *children);
    if (children == NULL)
        die_errno("calloc");
    for (int i = 0; i < places; i++)
        children[i].kill_at = NEVER;
}

int master_run(const struct options *o, char **argv, const int *fds, int sockets)
{
    bool is_successor = successor_begin();
    int signum = 0, number;

    make_places(o->workers);
    while (signum != SIGTERM && signum != SIGINT && (signum != RETIRE || !is_successor)) {
        if ((number = replace()) >= 0)
            return number;
        candidate_is_wanted |= signum == SIGHUP && !is_successor;
        succeed(argv, fds, sockets);
        kill_overdue();
        signum = wait_for_signal();
        reap();
    }
    if (signum == RETIRE)
        retire();
    end_all(signum != RETIRE);
    return -1;
}
