/*
 * nagle: how long small writes wait for acknowledgements, and how many segments they make.
 *
 * A client and a server, two processes, talk over one connection of loopback. A round is a request
 * of 200 bytes in one write (one), in two of 100 (two), or in 200 of one byte (bytes), and an
 * answer of one byte, which the server sends when it has all.
 * -d 1  the client has TCP_NODELAY: Nagle's algorithm is off
 * -q 1  the server asks for acknowledgements at once (TCP_QUICKACK) before each read
 * Shows: one sample a round: how long it took, and the segments with data that the client sent.
 * Source: RFC 896; RFC 1122, 4.2.3.2 and 4.2.3.4; Brooker, "It's always TCP_NODELAY", 2024; tcp(7).
 * Needs: Linux, for TCP_QUICKACK and tcpi_data_segs_out.
 * Run:   nagle -n 20 two
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

#define REQUEST    200
#define MAX_ROUNDS 100000
#define PATIENCE   300 /* seconds for the whole run */

static void switch_to(int fd, int option, int value, const char *name)
{
    if (setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value) < 0)
        die_errno("setsockopt %s", name);
}

/* The child's whole life: it ends when the client has closed. */
static _Noreturn void serve(int listen_fd, bool quickack)
{
    char request[REQUEST];
    size_t got = 0;

    alarm(PATIENCE);
    int fd = accept(listen_fd, NULL, NULL);
    if (fd < 0)
        _exit(EXIT_FAILURE);
    switch_to(fd, TCP_NODELAY, 1, "TCP_NODELAY"); /* its answers are not the question */
    for (;;) {
        if (quickack)
            switch_to(fd, TCP_QUICKACK, 1, "TCP_QUICKACK"); /* it does not last: tcp(7) */
        ssize_t n = recv(fd, request, sizeof request - got, 0);
        if (n <= 0)
            _exit(n == 0 && got == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
        got += (size_t)n;
        if (got == sizeof request) {
            got = 0;
            if (send(fd, "x", 1, MSG_NOSIGNAL) != 1)
                _exit(EXIT_FAILURE);
        }
    }
}

static uint32_t segments(int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
        die_errno("getsockopt TCP_INFO");
    if (size <= offsetof(struct tcp_info, tcpi_data_segs_out))
        die(EXIT_UNSUPPORTED, "this kernel does not count segments with data");
    return info.tcpi_data_segs_out;
}

/* A request in writes of `part` bytes, and its answer. */
static void round_trip(int fd, size_t part)
{
    static const char request[REQUEST];
    char answer;

    for (size_t at = 0; at < sizeof request; at += part)
        if (send(fd, request + at, part, MSG_NOSIGNAL) != (ssize_t)part)
            die_errno("send");
    ssize_t n = recv(fd, &answer, 1, 0);
    if (n != 1)
        die(EXIT_FAILURE, "no answer: %s", n < 0 ? strerror(errno) : "the server has closed");
}

static int connected(struct sockaddr_in *at, int listen_fd)
{
    socklen_t size = sizeof *at;

    if (getsockname(listen_fd, (struct sockaddr *)at, &size) < 0)
        die_errno("getsockname");
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)at, size) < 0)
        die_errno("connect");
    return fd;
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "ROUNDS", 1, MAX_ROUNDS, 50, 0},
        {'d', "NODELAY", 0, 1, 0, 0},
        {'q', "QUICKACK", 0, 1, 0, 0},
    };
    const struct command_line line = {options, 3, "one|two|bytes", 1, 1};
    char **words = read_command_line(argc, argv, &line);
    static const struct {
        const char *name;
        size_t part;
    } ways[] = {{"one", REQUEST}, {"two", REQUEST / 2}, {"bytes", 1}};
    struct sockaddr_in at = {.sin_family = AF_INET};
    size_t part = 0, rounds = options[0].value;
    int status;

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(words[0], ways[i].name) == 0)
            part = ways[i].part;
    if (part == 0)
        refuse(&line);
    alarm(PATIENCE);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listen_fd < 0 || bind(listen_fd, (struct sockaddr *)&at, sizeof at) < 0)
        die_errno("bind");
    if (listen(listen_fd, 1) < 0)
        die_errno("listen");
    signal(SIGCHLD, SIG_DFL); /* were it ignored, nobody could wait for a child */
    pid_t child = fork();
    if (child < 0)
        die_errno("fork");
    if (child == 0)
        serve(listen_fd, options[2].value != 0);
    int fd = connected(&at, listen_fd);
    switch_to(fd, TCP_NODELAY, options[1].value != 0, "TCP_NODELAY");
    uint64_t *took = samples_new(rounds, sizeof *took);
    uint32_t *sent = samples_new(rounds, sizeof *sent);
    for (size_t i = 0; i < rounds; i++) {
        uint32_t before = segments(fd);
        uint64_t start = now_ns();
        round_trip(fd, part);
        took[i] = now_ns() - start;
        sent[i] = segments(fd) - before;
    }
    close(fd);
    if (waitpid(child, &status, 0) < 0)
        die_errno("waitpid");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
        die(EXIT_FAILURE, "the server has failed");
    puts("round\tround_ns\tsegments");
    for (size_t i = 0; i < rounds; i++)
        printf("%lu\t%llu\t%lu\n", (unsigned long)i, (unsigned long long)took[i],
               (unsigned long)sent[i]);
    free(took);
    free(sent);
    samples_finish();
    return EXIT_SUCCESS;
}
