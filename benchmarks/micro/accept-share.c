/*
 * accept-share: which of the processes that wait for connections gets how many of them?
 *
 * PROCESSES processes wait for connections to one address, in one of the ways of accept_ways.h.
 * The first process connects CONNECTIONS times, reads the number of the process that has accepted,
 * and pauses each time for MICROSECONDS, in which all processes fall asleep again.
 * Shows: one sample for each process: its connections, and their share of all in per cent.
 * Source: Majkowski, "Why does one NGINX worker take all the load?", 2017; accept(2), epoll_ctl(2)
 * on EPOLLEXCLUSIVE, socket(7) on SO_REUSEPORT.
 * Needs: Linux and an epoll that knows EPOLLEXCLUSIVE. The processes end with the run; should the
 * first one be killed, after PATIENCE seconds.
 * Run:   accept-share -n 4 -c 400 exclusive
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "accept_ways.h"
#include "children.h"
#include "die.h"
#include "micro.h"

#define MAX_PROCESSES   200 /* a number of one byte */
#define MAX_CONNECTIONS 100000
#define MAX_PAUSE_US    1000000
#define PATIENCE        120 /* seconds for the whole run */

static int listen_on(struct sockaddr_in *at, const struct accept_way *way)
{
    socklen_t size = sizeof *at;
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        die_errno("socket");
    if (way->own_socket && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0)
        die_errno("setsockopt SO_REUSEPORT");
    if (bind(fd, (struct sockaddr *)at, size) < 0)
        die_errno("bind");
    if (getsockname(fd, (struct sockaddr *)at, &size) < 0)
        die_errno("getsockname");
    if (way->events != 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        die_errno("fcntl O_NONBLOCK");
    if (listen(fd, 128) < 0)
        die_errno("listen");
    return fd;
}

/* The child's whole life; its end is a signal. Each connection is told our number and closed. */
static _Noreturn void serve(const struct accept_way *way, int listen_fd, unsigned char number,
                            int report)
{
    alarm(PATIENCE);
    int fd = accept_way_open(way, listen_fd);
    if (fd < 0 || write(report, "", 1) != 1)
        _exit(EXIT_FAILURE);
    for (;;) {
        int connection = accept_way_next(way, fd, listen_fd);
        if (connection < 0 || send(connection, &number, 1, MSG_NOSIGNAL) != 1)
            _exit(EXIT_FAILURE);
        close(connection);
    }
}

static void pause_us(size_t us)
{
    struct timespec left = {.tv_sec = (time_t)(us / 1000000),
                            .tv_nsec = (long)(us % 1000000) * 1000};
    while (nanosleep(&left, &left) < 0)
        if (errno != EINTR)
            die_errno("nanosleep");
}

/* The number of the process that has taken our connection. */
static unsigned char visit(const struct sockaddr_in *at)
{
    unsigned char number;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        die_errno("socket");
    if (connect(fd, (const struct sockaddr *)at, sizeof *at) < 0)
        die_errno("connect");
    ssize_t n = recv(fd, &number, 1, 0);
    if (n < 0)
        die_errno("recv");
    if (n == 0)
        die(EXIT_FAILURE, "a process has closed a connection without a word");
    close(fd);
    return number;
}

static void end(const pid_t *pids, size_t count)
{
    int status, failed = 0;

    for (size_t i = 0; i < count; i++)
        if (kill(pids[i], SIGKILL) < 0)
            die_errno("kill");
    for (size_t i = 0; i < count; i++) {
        if (waitpid(pids[i], &status, 0) < 0)
            die_errno("waitpid");
        failed |= !WIFSIGNALED(status);
    }
    if (failed)
        die(EXIT_FAILURE, "a process could not wait for connections");
}

/* Fills in pids. A fork() that fails ends those that were made. */
static void start(const struct accept_way *way, struct sockaddr_in *at, pid_t *pids, size_t count)
{
    struct children children;
    int listen_fd = -1;

    children_open(&children, PATIENCE);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || way->own_socket)
            listen_fd = listen_on(at, way);
        pids[i] = fork();
        if (pids[i] == 0)
            serve(way, listen_fd, (unsigned char)i, children.report[1]);
        if (pids[i] < 0) {
            warn_errno("fork after %lu processes", (unsigned long)i);
            end(pids, i);
            exit(EXIT_FAILURE);
        }
        children_await_one(&children);
        if (way->own_socket)
            close(listen_fd); /* else connections would wait in a socket that is not served */
    }
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "PROCESSES", 1, MAX_PROCESSES, 4, 0},
        {'c', "CONNECTIONS", 1, MAX_CONNECTIONS, 400, 0},
        {'u', "MICROSECONDS", 0, MAX_PAUSE_US, 2000, 0},
    };
    const struct command_line line = {options, 3, ACCEPT_WAYS, 1, 1};
    char **words = read_command_line(argc, argv, &line);
    size_t processes = options[0].value, connections = options[1].value;
    size_t got[MAX_PROCESSES] = {0};
    pid_t pids[MAX_PROCESSES] = {0};
    struct sockaddr_in at = {.sin_family = AF_INET};

    const struct accept_way *way = accept_way_named(words[0]);
    if (way == NULL)
        refuse(&line);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    start(way, &at, pids, processes);
    for (size_t i = 0; i < connections; i++) {
        pause_us(options[2].value);
        got[visit(&at)]++;
    }
    end(pids, processes);

    puts("process\tconnections\tshare");
    for (size_t i = 0; i < processes; i++)
        printf("%lu\t%lu\t%.3f\n", (unsigned long)i, (unsigned long)got[i],
               100.0 * (double)got[i] / (double)connections);
    samples_finish();
    return EXIT_SUCCESS;
}
