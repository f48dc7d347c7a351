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
#define DEFAULT_CHILDREN 1000 /* without a limit the peer decides how many processes run here */

/* Global, because a signal handler has no other way to reach them. */
static pid_t *children; /* 0 marks a free place */
static int max_children;
static volatile sig_atomic_t live, grace_over;
static int turns;                 /* children_wait_for_turn(): how many are left in this round */
static sigset_t handled, outside; /* the signals with handlers; the mask outside hold and release */

/* One signal may stand for several children, so this waits until there is none left to wait for. */
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
    if (pid < 0 && errno == ECHILD) { /* none is left, whatever became of them */
        memset(children, 0, (size_t)max_children * sizeof *children);
        live = 0;
    }
    errno = saved; /* or accept() would seem to have failed with ECHILD */
}

static void on_grace_over(int signum)
{
    (void)signum;
    grace_over = 1;
}

/* Under load children end all the time: accept() goes on (SA_RESTART), and what it says is about
 * connections. sigsuspend() and pselect() return all the same. */
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
        turns = 0; /* the system has no room for more: not before the next round */
    for (int i = 0; i < max_children && pid > 0; i++) {
        if (children[i] == 0) {
            children[i] = pid;
            live++;
            return;
        }
    }
}

/* sigsuspend() lets the signals in and sleeps in one step: a child that ends just before it is not
 * missed. */
void children_wait_for_room(void)
{
    while (live >= max_children && !stopping)
        sigsuspend(&outside);
}

/*
 * All free places are filled in one round, and a second lies between the beginnings of two rounds.
 * sleep() would not do: any signal ends it, and each child that dies sends one. So the clock says
 * when it is over. pselect() is sigsuspend() with a time limit: no signal to stop is missed. Where
 * all die again and again, whatever they die of does not pass.
 */
bool children_wait_for_turn(void)
{
    static long long next_round;
    static int empty;
    long long left;

    children_hold();
    if (turns == 0) {
        children_wait_for_room();
        bool lived = now_ms() >= next_round; /* the last round's, for its second */
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
    signal(SIGALRM, SIG_DFL);
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
    while (live > 0 && !grace_over) /* the handler of the stop has set the alarm: stop.c */
        sigsuspend(&outside);
    signal_all(SIGKILL);
    while (live > 0)
        sigsuspend(&outside);
    children_release();
}
