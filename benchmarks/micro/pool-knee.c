/*
 * pool-knee: how long does a request wait for a thread of a pool, by the load?
 *
 * Starts SERVER with THREADS threads and lets REQUESTS clients come at random times, RATE a second
 * on average, whatever the server does (a Poisson process). The file they ask for is far larger
 * than the buffers of a socket, so the thread that serves a client sleeps until the client reads.
 * The client holds the thread for a random time, MICROSECONDS on average (exponentially
 * distributed), from the first byte of the reply on, and then resets the connection. So arrivals
 * and times of service are those of the queue M/M/w, and the threads, their queue and the kernel's
 * are real.
 * Shows: one sample: the load in per cent of the threads, the mean wait for a first byte since the
 * client was due, the mean time for which a thread was held, both together in times of that, and
 * how many clients were there on average.
 * FOLDER is made, holds the file, and is removed.
 * Needs: a server of this book that takes -w THREADS.
 * Run:   pool-knee -w 4 -r 400 -n 2000 build/bin/05-pool /tmp/knee
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "die.h"
#include "end_with_parent.h"
#include "micro.h"

#define MAX_REQUESTS 1000000
#define MAX_RATE     100000
#define MAX_HOLD_US  1000000
#define MAX_WAITING  1000      /* clients at a time: below the kernel's queue of connections */
#define FILE_BYTES   (8 << 20) /* twice what Linux lets a send buffer grow to */
#define READ_BUFFER  4096
#define PATIENCE     300 /* seconds for the whole run */

#define CANNOT_EXECUTE 127 /* the child's status, as a shell's */

static const char request[] = "GET /reply HTTP/1.0\r\n\r\n";

/* A client that has come and not gone. `began`: its first byte came then; 0 while it waits. */
struct visit {
    int fd;
    uint64_t due, began, until;
};

/* Sums of the clients that have gone, in nanoseconds. */
struct sums {
    uint64_t wait, hold;
};

/* From 0 up to 1, the same in each run: xorshift64*. */
static double draw(void)
{
    static uint64_t state = 2003;

    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (double)((state * UINT64_C(2685821657736338717)) >> 11) * 0x1p-53;
}

static uint64_t random_ns(double mean_ns)
{
    return (uint64_t)(-mean_ns * log(1 - draw()));
}

/* ---- the server ------------------------------------------------------------------------------ */

static pid_t server;
static char file[4096];
static const char *folder;

static void remove_files(void)
{
    unlink(file);
    rmdir(folder);
}

/* The signal ends us all the same. */
static void on_end(int signum)
{
    remove_files();
    signal(signum, SIG_DFL);
    raise(signum);
}

static void remove_files_at_end(void)
{
    static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM};

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (signal(endings[i], on_end) == SIG_IGN) /* as nohup(1) leaves SIGHUP */
            signal(endings[i], SIG_IGN);
    atexit(remove_files);
}

/* Of a length, and of no blocks: what is in it does not matter. */
static void make_file(const char *path)
{
    if ((size_t)snprintf(file, sizeof file, "%s/reply", path) >= sizeof file)
        die(EXIT_FAILURE, "%s: too long", path);
    folder = path;
    if (mkdir(path, 0755) < 0)
        die_errno("mkdir %s", path);
    remove_files_at_end();
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, FILE_BYTES) < 0)
        die_errno("%s", file);
    close(fd);
}

/* Starts it, waits for the line that says where it listens, and returns the port. */
static in_port_t start(const char *program, size_t threads)
{
    int said[2];
    char count[24], line[256];
    pid_t parent = getpid();

    snprintf(count, sizeof count, "%lu", (unsigned long)threads);
    if (pipe(said) < 0)
        die_errno("pipe");
    signal(SIGCHLD, SIG_DFL); /* were it ignored, nobody could wait for a child */
    server = fork();
    if (server < 0)
        die_errno("fork");
    if (server == 0) {
        end_with_parent(parent);
        if (dup2(said[1], STDOUT_FILENO) < 0)
            _exit(EXIT_FAILURE);
        close(said[0]);
        close(said[1]);
        execl(program, program, "-p", "0", "-w", count, folder, (char *)NULL);
        warn_errno("%s", program);
        _exit(CANNOT_EXECUTE); /* not exit(): the files are our parent's */
    }
    close(said[1]);
    FILE *from = fdopen(said[0], "r");
    if (from == NULL)
        die_errno("fdopen");
    char *port = fgets(line, sizeof line, from) ? strrchr(line, ':') : NULL;
    if (port == NULL) {
        int status;
        if (kill(server, SIGTERM) < 0 || waitpid(server, &status, 0) < 0)
            die_errno("stop the server");
        if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_EXECUTE)
            exit(EXIT_FAILURE); /* the child has said why */
        die(EXIT_FAILURE, "%s has not said where it listens", program);
    }
    return htons((in_port_t)atoi(port + 1));
}

static void stop(void)
{
    int status;

    if (kill(server, SIGTERM) < 0 || waitpid(server, &status, 0) < 0)
        die_errno("stop the server");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die(EXIT_FAILURE, "the server has failed");
}

/* ---- clients --------------------------------------------------------------------------------- */

/* A small buffer to read into: else the kernel takes more of the file before the thread sleeps. */
static int come(const struct sockaddr_in *at)
{
    int room = READ_BUFFER;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        die_errno("socket");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room) < 0)
        die_errno("setsockopt SO_RCVBUF");
    if (connect(fd, (const struct sockaddr *)at, sizeof *at) < 0)
        die_errno("connect");
    if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL) != (ssize_t)sizeof request - 1)
        die_errno("send");
    return fd;
}

/* Its first bytes are there, and stay: what is not read keeps the thread waiting. */
static void look_at_reply(int fd)
{
    static const char ok[] = " 200 ";
    char head[16] = "";
    ssize_t n = recv(fd, head, sizeof head - 1, MSG_PEEK);

    if (n < 0)
        die_errno("recv");
    if (strstr(head, ok) == NULL)
        die(EXIT_FAILURE, "no page, but \"%.12s\"", head);
}

/* Closed with a reset, so that the thread is free at once and not after the rest of the file. */
static void leave(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) < 0)
        die_errno("setsockopt SO_LINGER");
    close(fd);
}

/* Waits until a first byte comes, a client has held its thread for long enough, or one is due. */
static void await_next(const struct visit *visits, struct pollfd *polled, size_t there,
                       uint64_t due)
{
    uint64_t next = due, now = now_ns();

    for (size_t i = 0; i < there; i++) {
        polled[i] = (struct pollfd){.fd = visits[i].began ? -1 : visits[i].fd, .events = POLLIN};
        if (visits[i].began && visits[i].until < next)
            next = visits[i].until;
    }
    uint64_t left = next > now ? next - now : 0;
    struct timespec timeout = {.tv_sec = (time_t)(left / 1000000000),
                               .tv_nsec = (long)(left % 1000000000)};
    if (ppoll(polled, (nfds_t)there, &timeout, NULL) < 0 && errno != EINTR)
        die_errno("ppoll");
}

/* Lets all clients come and go; returns how long it took. */
static uint64_t visit_all(const struct sockaddr_in *at, size_t requests, double gap_ns,
                          double hold_ns, struct sums *sums)
{
    static struct visit visits[MAX_WAITING];
    static struct pollfd polled[MAX_WAITING];
    size_t made = 0, there = 0;
    uint64_t start = now_ns(), due = start + random_ns(gap_ns);

    while (made < requests || there > 0) {
        await_next(visits, polled, there, made < requests ? due : UINT64_MAX);
        uint64_t now = now_ns();
        size_t kept = 0;
        for (size_t i = 0; i < there; i++) {
            struct visit *one = &visits[i];
            if (one->began == 0 && polled[i].revents != 0) {
                look_at_reply(one->fd);
                one->began = now;
                one->until = now + random_ns(hold_ns);
            }
            if (one->began != 0 && one->until <= now) {
                leave(one->fd);
                sums->wait += one->began - one->due;
                sums->hold += now - one->began;
            } else
                visits[kept++] = *one;
        }
        there = kept;
        while (made < requests && due <= now_ns()) {
            if (there == MAX_WAITING)
                die(EXIT_FAILURE, "%d clients wait: the load is too high", MAX_WAITING);
            visits[there++] = (struct visit){.fd = come(at), .due = due};
            due += random_ns(gap_ns);
            made++;
        }
    }
    return now_ns() - start;
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'w', "THREADS", 1, 1000, 4, 0},
        {'r', "RATE", 1, MAX_RATE, 400, 0},
        {'n', "REQUESTS", 1, MAX_REQUESTS, 2000, 0},
        {'u', "MICROSECONDS", 1, MAX_HOLD_US, 5000, 0},
    };
    const struct command_line line = {options, 4, "SERVER FOLDER", 2, 2};
    char **words = read_command_line(argc, argv, &line);
    size_t threads = options[0].value, requests = options[2].value;
    struct sockaddr_in at = {.sin_family = AF_INET};
    struct sums sums = {0, 0};

    alarm(PATIENCE);
    make_file(words[1]);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = start(words[0], threads);
    double took = (double)visit_all(&at, requests, 1e9 / (double)options[1].value,
                                    1e3 * (double)options[3].value, &sums);
    stop();

    double wait = (double)sums.wait, hold = (double)sums.hold, each = (double)requests;
    puts("load\twait_us\thold_us\tstay\tthere");
    printf("%.3f\t%.3f\t%.3f\t%.4f\t%.4f\n", 100 * hold / (took * (double)threads),
           wait / each / 1e3, hold / each / 1e3, (wait + hold) / hold, (wait + hold) / took);
    samples_finish();
    return EXIT_SUCCESS;
}
