/*
 * one-slow: a server of several processes that differ from each other in nothing, and that wait
 * for connections in one of the ways of accept_ways.h. A request for /slow holds its process for
 * 50 ms, any other for 2 ms: the process sleeps and does not compute, so that the wait of the
 * others is that of a queue and not of a processor.
 *
 *     one-slow -m accept|epoll|exclusive|reuseport [-w N] [-a ADDR] [-p PORT] [DOCROOT]
 *
 * Takes:  HTTP requests, each in one segment and each on a connection of its own. Only for
 *         measuring, on loopback.
 * Gives:  the line of every server here, and 100 bytes for a request, until SIGTERM.
 * Source: Majkowski, "Perfect locality and three epic SystemTap scripts", 2017.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "accept_ways.h"
#include "die.h"
#include "end_with_parent.h"
#include "net.h"
#include "options.h"

#define MAX_WORKERS 64
#define QUICK_MS    2
#define SLOW_MS     50

static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n"
                            "Connection: close\r\n\r\n"
                            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"
                            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n";

static void hold_ms(long ms)
{
    struct timespec left = {.tv_nsec = ms * 1000000};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

static void answer(int fd)
{
    char request[4096];
    ssize_t n = recv(fd, request, sizeof request, 0);

    if (n > 0) {
        bool slow = n >= 9 && memcmp(request, "GET /slow", 9) == 0;
        hold_ms(slow ? SLOW_MS : QUICK_MS);
        if (send(fd, reply, sizeof reply - 1, MSG_NOSIGNAL) < 0)
            warn_errno("send");
    }
    close(fd);
}

static _Noreturn void child(pid_t parent, const struct accept_way *way, int listen_fd)
{
    signal(SIGTERM, SIG_DFL); /* it has nothing to finish */
    signal(SIGINT, SIG_DFL);
    end_with_parent(parent);
    int wait_fd = accept_way_open(way, listen_fd);
    if (wait_fd < 0)
        die_errno("epoll");
    for (;;) {
        int fd = accept_way_next(way, wait_fd, listen_fd);
        if (fd < 0)
            die_errno("accept");
        answer(fd);
    }
}

static void no_option(int fd)
{
    (void)fd;
}

int main(int argc, char **argv)
{
    struct options o;
    struct own_option own[] = {{'m', "WAY", "how the processes wait: " ACCEPT_WAYS, NULL}};
    int fds[MAX_WORKERS];
    pid_t pids[MAX_WORKERS];
    sigset_t ending;

    options_parse_own(&o, argc, argv, "several processes, of which a slow request holds one", own,
                      1);
    const struct accept_way *way = own[0].value ? accept_way_named(own[0].value) : NULL;
    int workers = o.workers > 0 ? o.workers : 4;
    if (way == NULL)
        die(EXIT_USAGE, "-m is missing, or not one of " ACCEPT_WAYS);
    if (workers > MAX_WORKERS)
        die(EXIT_USAGE, "-w: at most %d", MAX_WORKERS);
    /* Until all children run, a signal to end waits: none of them is to be left over. */
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    if (sigprocmask(SIG_BLOCK, &ending, NULL) < 0)
        die_errno("sigprocmask");
    if (way->own_socket)
        tcp_listen_each(&o, fds, workers, no_option);
    else
        fds[0] = way->events != 0 ? tcp_listen_nonblocking(&o) : tcp_listen(&o);
    pid_t parent = getpid();
    for (int i = 0; i < workers; i++) {
        pids[i] = fork();
        if (pids[i] < 0)
            die_errno("fork");
        if (pids[i] == 0) {
            if (sigprocmask(SIG_UNBLOCK, &ending, NULL) < 0)
                die_errno("sigprocmask");
            child(parent, way, fds[way->own_socket ? i : 0]);
        }
    }
    tcp_ready(fds[0], &o);
    int signum;
    if (sigwait(&ending, &signum) != 0)
        die(EXIT_FAILURE, "sigwait failed");
    for (int i = 0; i < workers; i++)
        if (kill(pids[i], SIGTERM) < 0 && errno != ESRCH)
            die_errno("kill");
    bool failed = false;
    for (int i = 0; i < workers; i++) {
        int status;
        if (waitpid(pids[i], &status, 0) < 0)
            die_errno("waitpid");
        failed |=
            !WIFSIGNALED(status) || (WTERMSIG(status) != SIGTERM && WTERMSIG(status) != SIGINT);
    }
    if (failed) /* with one less it is another queue */
        die(EXIT_FAILURE, "a process has ended before it was told to");
    return EXIT_SUCCESS;
}
