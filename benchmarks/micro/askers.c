#include "askers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "die.h"
#include "end_with_parent.h"
#include "micro.h"

#define EVENTS       256
#define WARM_NS      50000000U
#define WARM_ROUNDS  1 /* each client has asked so often, on average */
#define TIMED_ROUNDS 4

struct asker {
    int fd;
    size_t missing; /* bytes of replies */
};

static const char requests[DEPTH_MOST * REQUEST];
static char replies[DEPTH_MOST * REPLY];

/* What there is at a moment. Replies are counted by their bytes, and not where a client has all: a
 * server that sends to a thousand clients in turn ends with all of them at nearly the same time. */
struct look {
    uint64_t ns, server_ns, clients_ns, bytes;
};

struct seen *seen_new(void)
{
    struct seen *seen =
        mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (seen == MAP_FAILED)
        die_errno("mmap");
    return seen;
}

void stay_on(enum processor which)
{
    cpu_set_t may, one;
    int cpu = -1;

    if (sched_getaffinity(0, sizeof may, &may) < 0)
        die_errno("sched_getaffinity");
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &may) && (which == LAST_PROCESSOR || cpu < 0))
            cpu = i;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) < 0)
        die_errno("sched_setaffinity");
}

static uint64_t read_clock(clockid_t clock)
{
    struct timespec t;

    if (clock_gettime(clock, &t) < 0)
        die_errno("clock_gettime");
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static struct look look(clockid_t of_server, uint64_t bytes)
{
    return (struct look){
        .ns = now_ns(),
        .server_ns = read_clock(of_server),
        .clients_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID),
        .bytes = bytes,
    };
}

static void note(struct seen *seen, const struct look *from, const struct look *to)
{
    double ns = (double)(to->ns - from->ns), answered = (double)(to->bytes - from->bytes) / REPLY;

    seen->cpu_ns = (double)(to->server_ns - from->server_ns) / answered;
    seen->rate = answered * 1e9 / ns;
    seen->client_busy = 100 * (double)(to->clients_ns - from->clients_ns) / ns;
}

/* What accept() returns has TCP_NODELAY of the socket that listens. Without it a reply would wait
 * until the one before it is acknowledged. */
static int tcp_socket(void)
{
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        die_errno("socket");
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
        die_errno("setsockopt TCP_NODELAY");
    return fd;
}

static void ask(struct asker *one, size_t depth)
{
    ssize_t size = (ssize_t)(depth * REQUEST);

    if (send(one->fd, requests, (size_t)size, MSG_NOSIGNAL) != size)
        die_errno("send");
    one->missing = depth * REPLY;
}

/* Reads what is there; returns how many bytes. */
static size_t read_replies(struct asker *one)
{
    ssize_t n = recv(one->fd, replies, sizeof replies, 0);

    if (n < 0)
        die_errno("recv");
    if (n == 0)
        die(EXIT_FAILURE, "the server has closed a connection");
    if ((size_t)n > one->missing)
        die(EXIT_FAILURE, "more replies than requests");
    one->missing -= (size_t)n;
    return (size_t)n;
}

/* The whole life of the process. */
static void ask_all(const struct sockaddr_in *at, size_t clients, size_t depth, uint64_t ns,
                    struct seen *seen)
{
    static struct asker askers[ASKERS_MOST];
    struct epoll_event events[EVENTS];
    struct look from = {.ns = 0};
    size_t open = clients;
    bool over = false;
    clockid_t of_server;
    int fd = epoll_create1(EPOLL_CLOEXEC);

    if (fd < 0)
        die_errno("epoll_create1");
    errno = clock_getcpuclockid(getppid(), &of_server);
    if (errno != 0)
        die_errno("clock_getcpuclockid");
    for (size_t i = 0; i < clients; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &askers[i]};
        askers[i].fd = tcp_socket();
        if (connect(askers[i].fd, (const struct sockaddr *)at, sizeof *at) < 0)
            die_errno("connect");
        if (epoll_ctl(fd, EPOLL_CTL_ADD, askers[i].fd, &event) < 0)
            die_errno("epoll_ctl");
    }
    uint64_t start = now_ns(), bytes = 0;
    const uint64_t round = clients * depth * REPLY;
    for (size_t i = 0; i < clients; i++)
        ask(&askers[i], depth);
    while (open > 0) {
        int n = epoll_wait(fd, events, EVENTS, -1);
        if (n < 0 && errno != EINTR)
            die_errno("epoll_wait");
        uint64_t now = now_ns();
        if (from.ns == 0 && now - start >= WARM_NS && bytes >= WARM_ROUNDS * round) {
            from = look(of_server, bytes);
        } else if (from.ns != 0 && !over && now - from.ns >= ns &&
                   bytes - from.bytes >= TIMED_ROUNDS * round) {
            struct look to = look(of_server, bytes);
            note(seen, &from, &to);
            over = true;
        }
        for (int i = 0; i < n; i++) {
            struct asker *one = events[i].data.ptr;
            bytes += read_replies(one);
            if (one->missing > 0)
                continue;
            if (over) {
                close(one->fd);
                open--;
            } else
                ask(one, depth);
        }
    }
    seen->answered = bytes / REPLY;
}

static int listen_here(struct sockaddr_in *at)
{
    socklen_t size = sizeof *at;
    int fd = tcp_socket();

    if (bind(fd, (struct sockaddr *)at, size) < 0)
        die_errno("bind");
    if (listen(fd, ASKERS_MOST) < 0 || getsockname(fd, (struct sockaddr *)at, &size) < 0)
        die_errno("listen");
    return fd;
}

pid_t askers_start(int *fds, size_t clients, size_t depth, uint64_t ns, struct seen *seen)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    pid_t server = getpid();

    alarm(PATIENCE);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    signal(SIGCHLD, SIG_DFL); /* were it ignored, nobody could wait for a child */
    int listen_fd = listen_here(&at);
    pid_t pid = fork();
    if (pid < 0)
        die_errno("fork");
    if (pid == 0) {
        end_with_parent(server);
        alarm(PATIENCE);
        close(listen_fd);
        stay_on(FIRST_PROCESSOR);
        ask_all(&at, clients, depth, ns, seen);
        exit(EXIT_SUCCESS);
    }
    for (size_t i = 0; i < clients; i++) {
        fds[i] = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fds[i] < 0)
            die_errno("accept");
    }
    close(listen_fd);
    return pid;
}

void askers_await_end(pid_t askers)
{
    int status;

    if (waitpid(askers, &status, 0) < 0)
        die_errno("waitpid");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
        die(EXIT_FAILURE, "the clients have failed");
}
