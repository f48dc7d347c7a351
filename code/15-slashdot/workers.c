#include "15-slashdot/workers.h"

#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "03-prefork/end_with_parent.h"
#include "05b-nonblocking/conn.h"
#include "die.h"
#include "net.h"
#include "stop.h"

#define HANDED_SOCKETS "SLASHDOT_SOCKETS" /* in the environment, from one master to the next */
#define HANDED_WORKERS "SLASHDOT_WORKERS"
#define DEFER_S        1 /* a guest that says nothing is accepted after that */
#define MOST_RETIRED   256
#define PAUSE_MS       1000
#define NEVER          LLONG_MAX

static pid_t *current; /* by number; not above 0: none */
static int count;
static pid_t retired[MOST_RETIRED]; /* 0: none */

static const int waited_for[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD}; /* and never handled */
static sigset_t ours;

/* ---- what one master hands to the next: numbers, with commas between them */

static bool hand_over(const char *name, const int *numbers, int n)
{
    char text[12 * WORKERS_MOST_SOCKETS] = "", *at = text; /* ten digits, a comma */

    for (int i = 0; i < n; i++)
        at += sprintf(at, "%s%d", i > 0 ? "," : "", numbers[i]);
    return setenv(name, text, 1) == 0;
}

/* How many numbers there were; the variable is gone then. */
static int take_over(const char *name, int *numbers, int most)
{
    const char *at = getenv(name);
    int n = 0;

    while (at != NULL && *at != '\0' && n < most) {
        char *end;
        numbers[n++] = (int)strtol(at, &end, 10);
        at = *end == ',' ? end + 1 : NULL;
    }
    unsetenv(name);
    return n;
}

/* region: listen */
static void set_up(int fd)
{
    int on = 1, seconds = DEFER_S;

    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
        die_errno("setsockopt TCP_NODELAY");
    if (setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds) < 0)
        die_errno("setsockopt TCP_DEFER_ACCEPT");
}

int workers_listen(const struct options *o, int *fds, int number)
{
    int handed = take_over(HANDED_SOCKETS, fds, WORKERS_MOST_SOCKETS);

    sigemptyset(&ours);
    for (size_t i = 0; i < sizeof waited_for / sizeof *waited_for; i++)
        sigaddset(&ours, waited_for[i]);
    if (sigprocmask(SIG_BLOCK, &ours, NULL) < 0)
        die_errno("sigprocmask");
    if (handed == 0)
        tcp_listen_each(o, fds, number);
    else if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        die_errno("signal SIGPIPE");
    else
        number = handed;
    for (int i = 0; i < number; i++)
        set_up(fds[i]);
    return number;
}
/* endregion: listen */

/* ---- the master */

static void tell(const pid_t *whom, int n, int signum)
{
    for (int i = 0; i < n; i++)
        if (whom[i] > 0)
            kill(whom[i], signum); /* ESRCH: it has ended, and will be waited for */
}

/* Takes note of those that have ended; returns how many are left. */
static int reap(void)
{
    int left = 0;
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        for (int i = 0; i < count; i++)
            current[i] = current[i] == pid ? 0 : current[i];
        for (int i = 0; i < MOST_RETIRED; i++)
            retired[i] = retired[i] == pid ? 0 : retired[i];
    }
    for (int i = 0; i < count; i++)
        left += current[i] > 0;
    for (int i = 0; i < MOST_RETIRED; i++)
        left += retired[i] > 0;
    return left;
}

/* All times are by conn_now(): a wait ends whenever a child does, so to count waits is not to count
 * seconds. Returns a signal; -1 if the time is over, or soon. */
static int wait_for_signal(long long until)
{
    long long left = until - conn_now();
    struct timespec most = {0};

    if (until == NEVER)
        return sigwaitinfo(&ours, NULL);
    if (left > 0)
        most = (struct timespec){.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
    return sigtimedwait(&ours, NULL, &most);
}

/* region: restart */
/*
 * Both kinds of worker live for a while. Should the program not start, the old master goes on, with
 * new workers.
 */
static void restart(char **argv, const int *fds, int sockets)
{
    tell(current, count, SIGHUP);
    for (int i = 0, free = 0; i < count; i++) {
        while (free < MOST_RETIRED && retired[free] > 0)
            free++;
        if (current[i] > 0 && free < MOST_RETIRED)
            retired[free] = current[i];
        current[i] = 0;
    }
    if (hand_over(HANDED_SOCKETS, fds, sockets) && hand_over(HANDED_WORKERS, retired, MOST_RETIRED))
        execvp(argv[0], argv);
    warn_errno("restart: %s", argv[0]);
}
/* endregion: restart */

/* All are told, and have STOP_GRACE seconds, which they keep by themselves: stop_begin(). */
static void stop_all(void)
{
    long long kill_at = conn_now() + (STOP_GRACE + 1) * 1000;

    tell(current, count, SIGTERM);
    tell(retired, MOST_RETIRED, SIGTERM);
    while (reap() > 0) {
        if (conn_now() >= kill_at) {
            tell(current, count, SIGKILL);
            tell(retired, MOST_RETIRED, SIGKILL);
            kill_at += PAUSE_MS;
        }
        wait_for_signal(kill_at);
    }
}

/* Returns true in the child. */
static bool start(int number)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid < 0) /* EAGAIN, ENOMEM: those that run serve on, and this one is tried again */
        warn_errno("fork");
    if (pid == 0)
        end_with_parent(parent);
    current[number] = pid;
    return pid == 0;
}

/* region: keep */
static bool all_there(void)
{
    for (int i = 0; i < count; i++)
        if (current[i] <= 0)
            return false;
    return true;
}

int workers_start(const struct options *o, char **argv, const int *fds, int sockets)
{
    long long replace_at = 0; /* a worker that died is replaced, but not at once */
    int signum = 0;

    count = o->workers;
    current = calloc((size_t)count, sizeof *current);
    if (current == NULL)
        die_errno("calloc");
    take_over(HANDED_WORKERS, retired, MOST_RETIRED);
    while (signum != SIGTERM && signum != SIGINT) {
        for (int i = 0; conn_now() >= replace_at && i < count; i++)
            if (current[i] <= 0 && start(i))
                return i;
        if (all_there())
            replace_at = NEVER;
        else if (replace_at == NEVER || conn_now() >= replace_at)
            replace_at = conn_now() + PAUSE_MS;
        signum = wait_for_signal(replace_at);
        if (signum == SIGHUP) {
            restart(argv, fds, sockets);
            replace_at = 0;
        }
        reap();
    }
    stop_all();
    return -1;
}
/* endregion: keep */

/* ---- a worker */

int workers_news_fd(void)
{
    sigdelset(&ours, SIGCHLD); /* a worker has no children */
    int fd = signalfd(-1, &ours, SFD_NONBLOCK | SFD_CLOEXEC);

    if (fd < 0)
        die_errno("signalfd");
    return fd;
}

void workers_news(int fd, bool *retiring)
{
    struct signalfd_siginfo news;

    while (read(fd, &news, sizeof news) == sizeof news) {
        *retiring = news.ssi_signo == SIGHUP;
        if (*retiring)
            stopping = true;
        else
            stop_begin();
    }
}
