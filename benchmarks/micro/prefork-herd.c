/*
 * prefork-herd: how many processes does one connection wake, of all that wait for it?
 *
 * PROCESSES processes wait for connections to one address, in one of these ways:
 *   accept     all sleep in accept() on one socket
 *   poll       all sleep in poll() on one socket, and then call accept()
 *   epoll      the same with an epoll descriptor each
 *   exclusive  the same with EPOLLEXCLUSIVE
 *   reuseport  each in accept() on a socket of its own, all on one port
 * The first process connects CONNECTIONS times, waits each time until whoever accepted has closed,
 * and then for a while, until all are asleep again.
 * Shows: one sample a run. wakeups: how often the processes went to sleep again, divided by
 * CONNECTIONS; 1 is the least. connect_ns: mean time from connect() to the end of the connection.
 * Source: voluntary_ctxt_switches in proc(5); EPOLLEXCLUSIVE in epoll_ctl(2), SO_REUSEPORT in
 * socket(7).
 * Needs: Linux; room for the processes. They end with the run; should the first one be killed,
 * after PATIENCE seconds.
 * Run:   prefork-herd -n 16 poll
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "micro.h"

struct way {
    const char *name;
    bool own_socket;  /* each process listens itself, with SO_REUSEPORT, on the same port */
    bool nonblocking; /* wait() may return although another process has taken the connection */
    /* What to wait on for listen_fd, once for each process; -1 with errno. NULL: listen_fd. */
    int (*open)(int listen_fd);
    /* Sleeps until there may be a connection; -1 with errno. NULL: accept() does. */
    int (*wait)(int fd);
};

/* NULL if there is none of that name, or this system does not have it. */
static const struct way *way_named(const char *name);

/* Allows that several sockets listen on one port; -1 with errno. */
static int share_port(int fd);

/* How often a process has gone to sleep of its own accord; dies, with EXIT_UNSUPPORTED where the
 * system does not tell. */
static unsigned long voluntary_switches(pid_t pid);

/* dietlibc does not know all of it. */
#if defined(__linux__) && !defined(__dietlibc__)

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static int wait_poll(int fd)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    return poll(&wanted, 1, -1);
}

static int open_epoll_for(int listen_fd, unsigned events)
{
    struct epoll_event event = {.events = events, .data.fd = listen_fd};
    int fd = epoll_create1(0);
    if (fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, listen_fd, &event) < 0)
        return -1;
    return fd;
}

static int open_epoll(int listen_fd)
{
    return open_epoll_for(listen_fd, EPOLLIN);
}

static int open_exclusive(int listen_fd)
{
    return open_epoll_for(listen_fd, EPOLLIN | EPOLLEXCLUSIVE);
}

static int wait_epoll(int fd)
{
    struct epoll_event event;
    return epoll_wait(fd, &event, 1, -1);
}

static const struct way ways[] = {
    {"accept", false, false, NULL, NULL},
    {"poll", false, true, NULL, wait_poll},
    {"epoll", false, true, open_epoll, wait_epoll},
    {"exclusive", false, true, open_exclusive, wait_epoll},
    {"reuseport", true, false, NULL, NULL},
};

static const struct way *way_named(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

static int share_port(int fd)
{
    const int on = 1;
    return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
}

static unsigned long voluntary_switches(pid_t pid)
{
    char path[64], line[256];
    unsigned long count;
    bool found = false;

    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        die(EXIT_UNSUPPORTED, "%s: %s", path, strerror(errno));
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = sscanf(line, "voluntary_ctxt_switches: %lu", &count) == 1;
    fclose(file);
    if (!found)
        die(EXIT_UNSUPPORTED, "%s does not count context switches", path);
    return count;
}

#else

#include <errno.h>

static const struct way *way_named(const char *name)
{
    die(EXIT_UNSUPPORTED, "%s: Linux, with glibc or musl, is needed to count wake-ups", name);
}

static int share_port(int fd)
{
    (void)fd;
    errno = EINVAL;
    return -1;
}

static unsigned long voluntary_switches(pid_t pid)
{
    (void)pid;
    die(EXIT_UNSUPPORTED, "context switches are not counted here");
}

#endif

#define MAX_PROCESSES   4000
#define MAX_CONNECTIONS 100000
#define PATIENCE        60       /* seconds for the whole run */
#define SETTLE_NS       1000000L /* until all sleep again: this, and for each process ... */
#define SETTLE_EACH_NS  40000L   /* ... this, several times what a wake-up costs */

static int listen_on(struct sockaddr_in *at, const struct way *way)
{
    socklen_t size = sizeof *at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        die_errno("socket");
    if (way->own_socket && share_port(fd) < 0)
        die_errno("setsockopt SO_REUSEPORT");
    if (bind(fd, (struct sockaddr *)at, size) < 0)
        die_errno("bind");
    if (getsockname(fd, (struct sockaddr *)at, &size) < 0)
        die_errno("getsockname");
    if (way->nonblocking && fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        die_errno("fcntl O_NONBLOCK");
    if (listen(fd, 128) < 0)
        die_errno("listen");
    return fd;
}

/* The child's whole life. Its end is a signal. */
static _Noreturn void wait_and_accept(const struct way *way, int listen_fd, int report)
{
    alarm(PATIENCE);
    int fd = way->open != NULL ? way->open(listen_fd) : listen_fd;
    if (fd < 0 || write(report, "", 1) != 1)
        _exit(EXIT_FAILURE);
    for (;;) {
        if (way->wait != NULL && way->wait(fd) < 0 && errno != EINTR)
            _exit(EXIT_FAILURE);
        int connection = accept(listen_fd, NULL, NULL);
        if (connection >= 0)
            close(connection);
        else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            _exit(EXIT_FAILURE);
    }
}

static void settle(size_t processes)
{
    long wanted = SETTLE_NS + (long)processes * SETTLE_EACH_NS;
    struct timespec left = {.tv_sec = wanted / 1000000000L, .tv_nsec = wanted % 1000000000L};
    while (nanosleep(&left, &left) < 0)
        if (errno != EINTR)
            die_errno("nanosleep");
}

/* Returns the nanoseconds until the other end was closed. */
static uint64_t visit(const struct sockaddr_in *at)
{
    char byte;
    uint64_t start = now_ns();
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        die_errno("socket");
    if (connect(fd, (const struct sockaddr *)at, sizeof *at) < 0)
        die_errno("connect");
    if (recv(fd, &byte, 1, 0) < 0)
        die_errno("recv");
    uint64_t took = now_ns() - start;
    close(fd);
    return took;
}

static unsigned long switches_of(const pid_t *pids, size_t count)
{
    unsigned long sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += voluntary_switches(pids[i]);
    return sum;
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
static void start(const struct way *way, struct sockaddr_in *at, pid_t *pids, size_t count)
{
    struct children children;
    int listen_fd = -1;
    children_open(&children, PATIENCE);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || way->own_socket)
            listen_fd = listen_on(at, way);
        pids[i] = fork();
        if (pids[i] == 0)
            wait_and_accept(way, listen_fd, children.report[1]);
        if (pids[i] < 0) {
            warn_errno("fork after %lu processes", (unsigned long)i);
            end(pids, i);
            exit(EXIT_FAILURE);
        }
        children_await_one(&children);
        if (way->own_socket)
            close(listen_fd); /* else a connection may wait in a socket that nobody accepts from */
    }
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "PROCESSES", 1, MAX_PROCESSES, 16, 0},
        {'c', "CONNECTIONS", 1, MAX_CONNECTIONS, 50, 0},
    };
    const struct command_line line = {options, 2, "accept|poll|epoll|exclusive|reuseport", 1, 1};
    char **words = read_command_line(argc, argv, &line);
    size_t processes = options[0].value, connections = options[1].value;
    struct sockaddr_in at = {.sin_family = AF_INET};
    uint64_t took = 0;

    const struct way *way = way_named(words[0]);
    if (way == NULL)
        refuse(&line);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    pid_t *pids = samples_new(processes, sizeof *pids);
    start(way, &at, pids, processes);
    settle(processes);
    unsigned long before = switches_of(pids, processes);
    for (size_t i = 0; i < connections; i++) {
        took += visit(&at);
        settle(processes);
    }
    unsigned long switches = switches_of(pids, processes) - before;
    end(pids, processes);
    free(pids);

    puts("processes\twakeups\tconnect_ns");
    printf("%lu\t%.3f\t%llu\n", (unsigned long)processes, (double)switches / (double)connections,
           (unsigned long long)(took / connections));
    samples_finish();
    return EXIT_SUCCESS;
}
