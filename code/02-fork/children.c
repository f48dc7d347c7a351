#include "02-fork/children.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/wait.h>

#include "clock.h"
#include "die.h"
#include "stop.h"

#define ROUND_MS         1000
#define MOST_EMPTY       5    /* rounds in a row of which no child is left */
#define DEFAULT_CHILDREN 1000 /* else clients decide how many processes run here */

/* Global: a signal handler gets no other argument than the number. */
static pid_t *children; /* 0 marks a free place */
static int max_children;
static volatile sig_atomic_t live, grace_over;
static int turns;                 /* children_wait_for_turn(): how many are left in this round */
static sigset_t handled, outside; /* the signals with handlers; the mask outside hold and release */

/* One SIGCHLD may stand for several children, so waitpid() is called until it finds no more. */
static void on_child(int signum)
{
    int saved = errno;
    pid_t pid;

    (void)signum;
    /* region: collect */
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        for (int i = 0; i < max_children; i++) {
            if (children[i] == pid) {
                children[i] = 0;
                live--;
                break;
            }
        }
    }
    /* endregion: collect */
    if (pid < 0 && errno == ECHILD) { /* no child is left, so none is in the list */
        memset(children, 0, (size_t)max_children * sizeof *children);
        live = 0;
    }
    errno = saved; /* the interrupted code may be about to read its own errno */
}

static void on_grace_over(int signum)
{
    (void)signum;
    grace_over = 1;
}

/* SA_RESTART: under load children end all the time, and accept() shall not fail with EINTR for
 * each. sigsuspend() and pselect() are never restarted (signal(7)). */
void children_init(int most)
{
    struct sigaction child_ends = {.sa_handler = on_child, .sa_flags = SA_RESTART};

    sigfillset(&child_ends.sa_mask);
    max_children = most > 0 ? most : DEFAULT_CHILDREN;
    children = calloc((size_t)max_children, sizeof *children);
    if (children == NULL)
        die_errno("calloc");
    sigemptyset(&handled);
    sigaddset(&handled, SIGCHLD);
    sigaddset(&handled, SIGALRM);
    sigaddset(&handled, SIGTERM);
    sigaddset(&handled, SIGINT);
    if (sigaction(SIGCHLD, &child_ends, NULL) < 0)
        die_errno("sigaction SIGCHLD");
    stop_handle(SIGALRM, on_grace_over);
}

void children_hold(void)
{
    sigprocmask(SIG_BLOCK, &handled, &outside);
}

void children_release(void)
{
    sigprocmask(SIG_SETMASK, &outside, NULL);
}

void children_add(pid_t pid)
{
    if (pid < 0)
        turns = 0; /* fork() failed: wait for the next round */
    for (int i = 0; i < max_children && pid > 0; i++) {
        if (children[i] == 0) {
            children[i] = pid;
            live++;
            return;
        }
    }
}

/* sigsuspend() unblocks the signals and sleeps in one step, so a child that ends between the test
 * and the sleep wakes it. */
void children_wait_for_room(void)
{
    while (live >= max_children && !stopping)
        sigsuspend(&outside);
}

/*
 * All free places are filled in one round, and rounds begin at least a second apart: a child that
 * dies at once must not be forked in a loop. sleep() would end with every SIGCHLD, so the time is
 * taken from the clock. pselect() is sigsuspend() with a time limit, so no signal is missed.
 * Returns false after more than MOST_EMPTY rounds in a row in which all children died within a
 * second: it would go on like that.
 */
bool children_wait_for_turn(void)
{
    static long long next_round;
    static int empty;
    long long left;

    children_hold();
    if (turns == 0) {
        children_wait_for_room();
        bool lived = now_ms() >= next_round; /* all places were taken for a second */
        while (!stopping && (left = next_round - now_ms()) > 0) {
            struct timespec limit = {left / 1000, left % 1000 * 1000000L};
            pselect(0, NULL, NULL, NULL, &limit, &outside);
        }
        next_round = now_ms() + ROUND_MS;
        empty = live > 0 || lived ? 0 : empty + 1;
        turns = max_children - live;
    }
    turns--;
    children_release();
    return !stopping && empty <= MOST_EMPTY;
}

void children_forget(void)
{
    signal(SIGCHLD, SIG_DFL);
    stop_on_signals();
    children_release();
}

static void signal_all(int signum)
{
    for (int i = 0; i < max_children; i++)
        if (children[i] != 0)
            kill(children[i], signum);
}

void children_end(void)
{
    children_hold();
    signal_all(SIGTERM);
    while (live > 0 && !grace_over) /* the handler of SIGTERM has set alarm(STOP_GRACE): stop.c */
        sigsuspend(&outside);
    signal_all(SIGKILL);
    while (live > 0)
        sigsuspend(&outside);
    children_release();
}
