#include "15-slashdot/master.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "end_with_parent.h"
#include "clock.h"
#include "15-slashdot/successor.h"
#include "die.h"
#include "known_state.h"
#include "log.h"
#include "net.h"
#include "stop.h"

#define MOST_SUCCESSORS 16 /* at a time: one that serves, and those that have retired */
#define PAUSE_MS        1000
#define MOST_DOUBLINGS  6 /* of the pause: 64 s */
#define MOST_ROUNDS     5 /* of replacing, in which no worker came to serve */
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
    bool serves;
};
static struct child *children;
static int own_workers, places;
static int serving = -1; /* the place of the successor that accepts; -1: the workers do */

static struct successor candidate;
static bool candidate_is_wanted;
static long long replace_at; /* when the workers are started that are missing */
static int rounds;           /* of that, since one ended that had served for a while */

static int hearing[2]; /* a pipe: a worker writes its number when it serves */
static bool has_served, first_failed;

void master_begin(const char *argv0)
{
    sigemptyset(&ours);
    for (size_t i = 0; i < sizeof waited_for / sizeof *waited_for; i++)
        sigaddset(&ours, waited_for[i]);
    known_state(argv0, &ours);
}

static bool is_there(int i)
{
    return children[i].pid > 0;
}

/* Alive, or also known to serve. */
static bool is_any(bool known_to_serve)
{
    if (serving >= 0)
        return is_there(serving) || (!known_to_serve && candidate.pid > 0);
    for (int i = 0; i < own_workers; i++)
        if (is_there(i) && (children[i].serves || !known_to_serve))
            return true;
    return false;
}

static bool all_are_there(void)
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

/* One that ends by itself has said why. */
static void report(int status)
{
    char line[64];

    if (!WIFSIGNALED(status))
        return;
    snprintf(line, sizeof line, "a worker was ended by signal %d", WTERMSIG(status));
    log_line(line);
}

static void has_ended(pid_t pid, int status)
{
    for (int i = 0; i < places; i++) {
        if (children[i].pid != pid)
            continue;
        if (i < own_workers && children[i].kill_at == NEVER)
            report(status);
        first_failed |= !has_served;
        if (children[i].serves && now_ms() - children[i].since >= PAUSE_MS)
            rounds = 0;
        children[i] = (struct child){.kill_at = NEVER};
    }
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

    if (left > 0)
        most = (struct timespec){.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
    int signum = sigtimedwait(&ours, NULL, until == NEVER ? NULL : &most);
    if (signum < 0 && errno != EAGAIN && errno != EINTR)
        die_errno("sigtimedwait");
    return signum;
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
    int i = free_place(); /* there was one when it was started, and no other child has taken it */

    children[i] = (struct child){.pid = pid, .since = now_ms(), .kill_at = NEVER};
    return i;
}

/* Once in a turn. Until the next program has said that it is ready no worker retires; and none is
 * started before the line "listening", for the first workers' end would be the program's. */
static void succeed(char **argv, const int *fds, int sockets)
{
    pid_t pid = candidate.pid;

    if (pid > 0 && successor_is_ready(&candidate)) {
        retire();
        serving = give_place(pid);
        rounds = 0;
    } else if (pid > 0 && now_ms() >= candidate.until) {
        successor_failed(&candidate, -1);
        int i = give_place(pid);
        stop(i, i + 1);
    }
    if (!candidate_is_wanted || candidate.pid > 0 || !has_served)
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
    first_failed |= pid < 0 && !has_served;
    children[number] = (struct child){.pid = pid, .since = now_ms(), .kill_at = NEVER};
    if (pid != 0)
        return false;
    end_with_parent(parent);
    close(hearing[0]);
    if (candidate.pid > 0)
        close(candidate.fd);
    return true;
}

void master_hears(int number)
{
    successor_ready(false);
    (void)!write(hearing[1], &number, sizeof number);
    close(hearing[1]);
}

/* Once in a turn: which workers have come to serve. */
static void hear(void)
{
    int number;

    while (read(hearing[0], &number, sizeof number) == sizeof number) {
        if (number < 0 || number >= own_workers || !is_there(number))
            continue;
        children[number].serves = true;
        if (has_served)
            continue;
        rounds = 0;
        replace_at = now_ms();
    }
}

/*
 * After one round of replacing these sockets still have no worker. A client that the kernel hashed
 * to one of them would wait without end. A socket that is shut leaves the group, until a worker is
 * there that can serve it (workers_listen_again()). What is in its queue is reset, or where
 * net.ipv4.tcp_migrate_req is 1, another socket's.
 */
static void shut_deaf(const int *fds, int sockets)
{
    for (int s = 0; s < sockets; s++) {
        bool deaf = serving < 0 || !is_there(serving);
        for (int i = s; serving < 0 && i < own_workers; i += sockets)
            deaf = deaf && !is_there(i);
        if (deaf)
            shutdown(fds[s], SHUT_RD);
    }
}

/* Some die as soon as they live, or serve, so none is replaced at once. The pause is doubled with
 * each round of such; not where no worker serves, for then clients wait. */
static long long pause_ms(void)
{
    int doublings = rounds < MOST_DOUBLINGS ? rounds : MOST_DOUBLINGS;

    return is_any(true) ? (long long)PAUSE_MS << doublings : PAUSE_MS;
}

/* Starts the workers that are missing. At first that is one alone: what it lacks the others would
 * lack, too, and say so. Returns the number of a new worker in that, -1 in the master. */
static int replace(const int *fds, int sockets)
{
    int most = has_served || children[0].serves ? own_workers : 1;
    bool fork_fails = false;

    if (all_are_there())
        replace_at = NEVER;
    else if (replace_at == NEVER)
        replace_at = now_ms() + pause_ms();
    if (now_ms() < replace_at || (serving >= 0 && candidate.pid > 0))
        return -1;
    if (has_served && rounds > 0) /* before that a successor's sockets are still the old workers' */
        shut_deaf(fds, sockets);
    for (int i = 0; serving < 0 && i < most && !fork_fails; i++) {
        if (!is_there(i) && start(i))
            return i;
        fork_fails = children[i].pid < 0;
    }
    candidate_is_wanted |= serving >= 0;
    rounds++;
    replace_at = first_failed ? now_ms() : now_ms() + pause_ms();
    return -1;
}

/* Before all of the first workers serve it is the end if one of them fails; later if in so many
 * rounds none could be had, and none is left. */
static bool gives_up(void)
{
    bool none_left = has_served && rounds >= MOST_ROUNDS && !is_any(false);

    if (none_left)
        log_line("no worker could be started again: the end");
    return none_left || first_failed;
}

/* Once in a turn, until it is true. */
static void look_whether_first_serve(int listen_fd, const struct options *o)
{
    for (int i = 0; i < own_workers; i++)
        if (!children[i].serves)
            return;
    if (has_served)
        return;
    has_served = true;
    if (!successor_ready(true))
        tcp_ready(listen_fd, o);
}

static void end_all(bool hurry)
{
    replace_at = NEVER;
    if (candidate.pid > 0) { /* it serves no client, but may have workers */
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
    if (pipe2(hearing, O_CLOEXEC | O_NONBLOCK) < 0 || fcntl(hearing[0], F_SETOWN, getpid()) < 0 ||
        fcntl(hearing[0], F_SETFL, O_NONBLOCK | O_ASYNC) < 0) /* SIGIO: as in successor.c */
        die_errno("pipe2");
    for (int i = 0; i < places; i++)
        children[i].kill_at = NEVER;
}

int master_run(const struct options *o, char **argv, const int *fds, int sockets)
{
    bool is_successor = successor_begin(), failed = false;
    int signum = 0, number;

    make_places(o->workers);
    while (!failed && signum != SIGTERM && signum != SIGINT &&
           (signum != RETIRE || !is_successor)) {
        if ((number = replace(fds, sockets)) >= 0)
            return number;
        candidate_is_wanted |= signum == SIGHUP && !is_successor;
        succeed(argv, fds, sockets);
        kill_overdue();
        signum = wait_for_signal();
        hear();
        reap();
        look_whether_first_serve(fds[0], o);
        failed = gives_up();
    }
    if (signum == RETIRE)
        retire();
    end_all(signum != RETIRE);
    if (failed)
        exit(EXIT_FAILURE);
    return -1;
}
