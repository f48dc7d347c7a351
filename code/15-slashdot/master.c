#include "15-slashdot/master.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
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
#define MOST_ROUNDS     5 /* fruitless; then the program ends as soon as no worker is left */
#define NEVER           LLONG_MAX

/* Blocked, and taken by sigtimedwait(): there is no handler. */
static sigset_t awaited;

/*
 * First our workers, by number; then places for successors, each the master of its own workers.
 * Both take SIGTERM and RETIRE. Times are those of now_ms(): every signal ends a wait, so waits do
 * not measure time.
 */
static struct child {
    pid_t pid;         /* 0 or -1: there is none */
    long long since;   /* a worker: its fork(); a successor: it got its place */
    long long kill_at; /* it gets SIGKILL, after SIGTERM; else NEVER */
    bool serves;       /* of a worker: it has said so */
} * children;
static int own_workers, places;
static int serving = -1; /* the place of the successor that accepts; -1: our workers do */

static struct successor candidate; /* that sets itself up; its pid is 0 if there is none */
static bool candidate_is_wanted;   /* SIGHUP, or the serving successor has ended */
static long long replace_at;       /* when missing workers are started; NEVER: none is missing */
/* Rounds of starting workers or a candidate. `rounds` make the pause longer; `fruitless` ones end
 * the program. Both are 0 again when a worker ends that has served and lived PAUSE_MS, and when a
 * successor is ready; `fruitless` also when a signal ends one that has served, such as SIGSEGV. */
static int rounds, fruitless;

static int hearing[2];    /* a pipe: a worker writes its number when it serves */
static int waiting[2];    /* another: workers accept once the master has closed its end */
static bool has_served;   /* all of the first workers: "listening" is printed */
static bool first_failed; /* one of them ended, or could not be started, before that */

void master_begin(const char *argv0)
{
    /* Nobody here sends SIGUSR1: others do so to have a log opened anew. */
    const int waited_for[] = {SIGTERM, SIGINT, SIGHUP, RETIRE, SIGUSR1, SIGCHLD, SIGIO};

    sigemptyset(&awaited);
    for (size_t i = 0; i < sizeof waited_for / sizeof *waited_for; i++)
        sigaddset(&awaited, waited_for[i]);
    known_state(argv0, &awaited);
}

static bool child_is_there(int i)
{
    return children[i].pid > 0;
}

/* Whether a process that accepts connections is there; without `known_to_serve`, or may soon be. */
static bool serving_is_alive(bool known_to_serve)
{
    if (serving >= 0)
        return child_is_there(serving) || (!known_to_serve && candidate.pid > 0);
    for (int i = 0; i < own_workers; i++)
        if (child_is_there(i) && (children[i].serves || !known_to_serve))
            return true;
    return false;
}

static bool serving_is_whole(void)
{
    if (serving >= 0)
        return child_is_there(serving);
    for (int i = 0; i < own_workers; i++)
        if (!child_is_there(i))
            return false;
    return true;
}

static void child_signal(int i, int signum)
{
    if (child_is_there(i))
        kill(children[i].pid, signum); /* ESRCH: it has ended; waitpid() will say so */
}

/* Each ends by itself within STOP_GRACE seconds (stop_begin()); kill_at is for one that does not. A
 * successor has to wait for its workers, so it has a second more. */
static void children_stop(int from, int to)
{
    for (int i = from; i < to; i++) {
        if (!child_is_there(i) || children[i].kill_at != NEVER)
            continue;
        children[i].kill_at = now_ms() + (STOP_GRACE + (i < own_workers ? 1 : 2)) * 1000;
        child_signal(i, SIGTERM);
    }
}

static void children_kill_overdue(void)
{
    for (int i = 0; i < places; i++) {
        if (now_ms() < children[i].kill_at)
            continue;
        child_signal(i, SIGKILL);
        children[i].kill_at += PAUSE_MS;
    }
}

/* A process that ends by an error has written its own line; one that a signal ended has not. */
static void report_signal_of(const char *what, int status)
{
    char line[64];

    if (!WIFSIGNALED(status))
        return;
    snprintf(line, sizeof line, "a %s was ended by signal %d", what, WTERMSIG(status));
    log_line(line);
}

static void note_child_end(pid_t pid, int status)
{
    for (int i = 0; i < places; i++) {
        if (children[i].pid != pid)
            continue;
        if (children[i].kill_at == NEVER)
            report_signal_of(i < own_workers ? "worker" : "successor", status);
        first_failed |= !has_served;
        bool has_lived = now_ms() - children[i].since >= PAUSE_MS;
        if (children[i].serves && (has_lived || WIFSIGNALED(status)))
            fruitless = 0;
        if (children[i].serves && has_lived)
            rounds = 0;
        children[i] = (struct child){.kill_at = NEVER};
    }
    if (pid == candidate.pid)
        successor_failed(&candidate, status);
}

/* Waits for the children that have ended. Returns how many are left. */
static int children_reap(void)
{
    int left = 0, status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        note_child_end(pid, status);
    for (int i = 0; i < places; i++)
        left += child_is_there(i);
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

/* Sleeps until a signal or a deadline. Returns the signal; -1: none, or others sent RETIRE. */
static int wait_for_signal(void)
{
    long long until = next_deadline(), left = until - now_ms();
    struct timespec most = {0};
    siginfo_t info;

    if (left > 0)
        most = (struct timespec){.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
    int signum = sigtimedwait(&awaited, &info, until == NEVER ? NULL : &most);
    if (signum < 0 && errno != EAGAIN && errno != EINTR)
        die_errno("sigtimedwait");
    /* Sender 0: it is outside of our PID namespace, or the queue of signals was full. */
    return signum == RETIRE && info.si_pid != getppid() && info.si_pid != 0 ? -1 : signum;
}

/* ---- the next program */

static int successor_free_place(void)
{
    for (int i = own_workers; i < places; i++)
        if (i != serving && !child_is_there(i))
            return i;
    return -1;
}

static void successor_stop_oldest(void)
{
    int oldest = -1;

    for (int i = own_workers; i < places; i++)
        if (i != serving && (oldest < 0 || children[i].since < children[oldest].since))
            oldest = i;
    children_stop(oldest, oldest + 1);
}

static void serving_retire(void)
{
    if (serving >= 0)
        child_signal(serving, RETIRE);
    for (int i = 0; serving < 0 && i < own_workers; i++)
        child_signal(i, RETIRE);
}

/* The candidate becomes one of the children. Returns its place. */
static int successor_give_place(pid_t pid)
{
    int i = successor_free_place(); /* there is one: restart_step() asked before it was started */

    children[i] = (struct child){.pid = pid, .since = now_ms(), .kill_at = NEVER};
    return i;
}

/*
 * Once in a turn of master_run(). No worker retires before the new program has said that it is
 * ready. No successor is started before "listening": until then the end of a worker is the end of
 * the program.
 */
static void restart_step(char **argv, const int *fds, int sockets)
{
    pid_t pid = candidate.pid;

    if (pid > 0 && successor_is_ready(&candidate)) {
        serving_retire();
        serving = successor_give_place(pid);
        rounds = fruitless = 0;
    } else if (pid > 0 && now_ms() >= candidate.until) {
        successor_failed(&candidate, -1);
        int i = successor_give_place(pid);
        children_stop(i, i + 1);
    }
    if (!candidate_is_wanted || candidate.pid > 0 || !has_served)
        return;
    if (successor_free_place() < 0) { /* SIGHUP comes faster than clients leave */
        successor_stop_oldest();
        return;
    }
    candidate_is_wanted = false;
    successor_start(&candidate, argv, fds, sockets);
}

/* ---- start, keep, end */

/* Returns true in the child. */
static bool worker_start(int number)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid < 0) /* EAGAIN, ENOMEM: the others go on, and this one is tried again */
        warn_errno("fork");
    first_failed |= pid < 0 && !has_served;
    children[number] = (struct child){.pid = pid, .since = now_ms(), .kill_at = NEVER};
    if (pid != 0)
        return false;
    end_with_parent(parent);
    close(hearing[0]);
    if (!has_served)
        close(waiting[1]);
    if (candidate.pid > 0)
        close(candidate.fd);
    return true;
}

void worker_tells_master(int number, int signal_fd)
{
    struct pollfd ends[] = {{.fd = waiting[0]}, {.fd = signal_fd, .events = POLLIN}};

    successor_ready(false);
    (void)!write(hearing[1], &number, sizeof number);
    close(hearing[1]);
    while (poll(ends, 2, -1) < 0 && errno == EINTR)
        continue;
    close(waiting[0]);
}

/* Once in a turn: notes which workers have written that they serve. */
static void master_reads_workers(void)
{
    int number;

    while (read(hearing[0], &number, sizeof number) == sizeof number) {
        if (number < 0 || number >= own_workers || !child_is_there(number))
            continue;
        children[number].serves = true;
        if (has_served)
            continue;
        rounds = 0;
        replace_at = now_ms();
    }
}

/*
 * Shuts the sockets without a worker as soon as the first attempt to replace it has failed, if
 * another worker serves: the kernel then gives new connections to the others of the SO_REUSEPORT
 * group, until a worker listens again (workers_listen_again()). Connections that wait in the queue
 * are reset, or moved to another socket if net.ipv4.tcp_migrate_req is 1. Where none serves they
 * wait for the next worker. Not while there is a candidate, whose workers use the sockets, too.
 */
static void shut_sockets_without_worker(const int *fds, int sockets)
{
    if (rounds == 0 || serving >= 0 || candidate.pid > 0 || !serving_is_alive(true))
        return;
    for (int s = 0; s < sockets; s++) {
        bool unserved = true;
        for (int i = s; i < own_workers; i += sockets)
            unserved = unserved && !child_is_there(i);
        if (unserved)
            shutdown(fds[s], SHUT_RD); /* ENOTCONN: it is shut already */
    }
}

/* Workers may die as soon as they start, so none is replaced at once: after 1 s, doubled with each
 * round up to 64 s. If no worker serves it is 1 s. */
static long long replace_pause_ms(void)
{
    int doublings = rounds < MOST_DOUBLINGS ? rounds : MOST_DOUBLINGS;

    return serving_is_alive(true) ? (long long)PAUSE_MS << doublings : PAUSE_MS;
}

/* Starts the workers that are missing. The very first is started alone: if it lacks something, one
 * line says so and not one of each. Returns the worker's number in a new worker, -1 in the master.
 */
static int workers_replace(const int *fds, int sockets)
{
    int most = has_served || children[0].serves ? own_workers : 1;
    bool fork_fails = false;

    if (serving_is_whole())
        replace_at = NEVER;
    else if (replace_at - now_ms() > replace_pause_ms()) /* NEVER; or it was set for more rounds */
        replace_at = now_ms() + replace_pause_ms();
    if (has_served) /* before "listening" they are the old program's */
        shut_sockets_without_worker(fds, sockets);
    if (now_ms() < replace_at || (serving >= 0 && candidate.pid > 0))
        return -1;
    for (int i = 0; serving < 0 && i < most && !fork_fails; i++) {
        if (!child_is_there(i) && worker_start(i))
            return i;
        fork_fails = children[i].pid < 0;
    }
    candidate_is_wanted |= serving >= 0;
    rounds++;
    fruitless++;
    replace_at = first_failed ? now_ms() : now_ms() + replace_pause_ms();
    return -1;
}

/* Before "listening" the program ends if one worker fails; later if none is left and MOST_ROUNDS
 * were fruitless: then something is missing that each worker needs. */
static bool master_gives_up(void)
{
    bool none_left = has_served && fruitless >= MOST_ROUNDS && !serving_is_alive(false);

    if (none_left)
        log_line("no worker could be started again: the end");
    return none_left || first_failed;
}

/* Once in a turn: when all of the first workers serve, says "listening" or, as a successor, ready.
 */
static void first_workers_step(int listen_fd, const struct options *o)
{
    for (int i = 0; i < own_workers; i++)
        if (!children[i].serves)
            return;
    if (has_served)
        return;
    has_served = true;
    if (!successor_ready(true))
        tcp_ready(listen_fd, o);
    close(waiting[1]);
}

/* Returns when no child is left: soon after SIGTERM or SIGINT (`at_once`), else when clients leave.
 */
static void children_end(bool at_once)
{
    replace_at = NEVER;
    if (candidate.pid > 0) { /* it may have workers, and they may serve clients */
        close(candidate.fd);
        successor_give_place(candidate.pid);
        candidate.pid = 0;
    }
    for (;;) {
        if (at_once)
            children_stop(0, places);
        children_kill_overdue();
        if (children_reap() == 0)
            return;
        int signum = wait_for_signal();
        at_once = signum == SIGTERM || signum == SIGINT;
    }
}

static void children_make_places(int number)
{
    own_workers = number;
    places = own_workers + MOST_SUCCESSORS;
    children = calloc((size_t)places, sizeof *children);
    if (children == NULL)
        die_errno("calloc");
    if (pipe2(waiting, O_CLOEXEC) < 0 || pipe2(hearing, O_CLOEXEC | O_NONBLOCK) < 0 ||
        fcntl(hearing[0], F_SETOWN, getpid()) < 0 ||
        fcntl(hearing[0], F_SETFL, O_NONBLOCK | O_ASYNC) < 0) /* SIGIO: as in successor.c */
        die_errno("pipe2");
    for (int i = 0; i < places; i++)
        children[i].kill_at = NEVER;
}

int master_run(const struct options *o, char **argv, const int *fds, int sockets)
{
    bool is_successor = successor_begin(), failed = false;
    int signum = 0, number;

    children_make_places(o->workers);
    while (!failed && signum != SIGTERM && signum != SIGINT &&
           (signum != RETIRE || !is_successor)) {
        if ((number = workers_replace(fds, sockets)) >= 0)
            return number;
        candidate_is_wanted |= signum == SIGHUP && !is_successor;
        restart_step(argv, fds, sockets);
        children_kill_overdue();
        signum = wait_for_signal();
        master_reads_workers();
        children_reap();
        first_workers_step(fds[0], o);
        failed = master_gives_up();
    }
    if (signum == RETIRE)
        serving_retire();
    children_end(signum != RETIRE);
    if (failed)
        exit(EXIT_FAILURE);
    return -1;
}
