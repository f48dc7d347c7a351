/*
 * first-read: how much of a reply does a client see that reads once?
 *
 * Shows: the talk's first program, nine lines long, asks for a page and reads its reply with one
 * read() of 4096 bytes. Here that read is done on a connection to a thread that answers as a web
 * server does, with a head of HEAD_SIZE bytes and a page of -p bytes, in one write ("together") or
 * in two ("apart"). A line has what was asked of read(), what it returned, and how long the reply
 * was; the client of the talk cannot tell the difference.
 * Run:   first-read -n 10 -p 65536 apart
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

#define MAX_SAMPLES  100000
#define MAX_PAGE     (1 << 20)
#define BUFFER_SIZE  4096 /* the talk's */
#define HEAD_SIZE    190
#define REQUEST      "GET / HTTP/1.0\r\n\r\n"
#define REQUEST_SIZE (sizeof REQUEST - 1)
#define PATIENCE     60 /* seconds for the whole run */

static int listen_on_any_port(struct sockaddr_in *address)
{
    socklen_t size = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET};
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd == -1)
        die_errno("socket");
    if (bind(fd, (const struct sockaddr *)address, sizeof *address) == -1)
        die_errno("bind");
    if (listen(fd, 1) == -1)
        die_errno("listen");
    if (getsockname(fd, (struct sockaddr *)address, &size) == -1)
        die_errno("getsockname");
    return fd;
}

/* False when the client has gone, which after its one read it has every right to. */
static bool send_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);
        if (n == -1 && errno == EINTR)
            continue;
        if (n == -1)
            return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

static void answer(int fd, const char *reply, size_t size, bool apart)
{
    char request[REQUEST_SIZE];
    if (recv(fd, request, sizeof request, MSG_WAITALL) != (ssize_t)sizeof request)
        die(EXIT_FAILURE, "no request came");
    size_t first = apart ? HEAD_SIZE : size;
    if (send_all(fd, reply, first))
        send_all(fd, reply + first, size - first);
    if (close(fd) == -1)
        die_errno("close");
}

struct server {
    int listen_fd;
    size_t count; /* of replies */
    size_t size;  /* of each */
    bool apart;
};

static void *serve(void *arg)
{
    const struct server *server = arg;
    char *reply = samples_new(server->size, 1);
    memset(reply, 'x', server->size);
    for (size_t i = 0; i < server->count; i++) {
        int fd = accept(server->listen_fd, NULL, NULL);
        if (fd == -1)
            die_errno("accept");
        answer(fd, reply, server->size, server->apart);
    }
    free(reply);
    return NULL;
}

/* What one read() makes of a reply of any length. */
static size_t read_once(const struct sockaddr_in *server)
{
    char buffer[BUFFER_SIZE];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd == -1)
        die_errno("socket");
    if (connect(fd, (const struct sockaddr *)server, sizeof *server) == -1)
        die_errno("connect");
    if (!send_all(fd, REQUEST, REQUEST_SIZE))
        die_errno("send");
    ssize_t n = read(fd, buffer, sizeof buffer);
    if (n == -1)
        die_errno("read");
    if (close(fd) == -1)
        die_errno("close");
    return (size_t)n;
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 50, 0},
        {'p', "PAGE_BYTES", 0, MAX_PAGE, 65536, 0},
    };
    const struct command_line line = {options, 2, "together|apart", 1, 1};
    char **way = read_command_line(argc, argv, &line);
    bool apart = strcmp(*way, "apart") == 0;
    if (!apart && strcmp(*way, "together") != 0)
        refuse(&line);
    size_t count = options[0].value;
    size_t *got = samples_new(count, sizeof *got);
    struct sockaddr_in address;
    struct server server = {
        .listen_fd = listen_on_any_port(&address),
        .count = count,
        .size = HEAD_SIZE + options[1].value,
        .apart = apart,
    };
    pthread_t thread;
    errno = pthread_create(&thread, NULL, serve, &server);
    if (errno != 0)
        die_errno("pthread_create");

    alarm(PATIENCE);
    for (size_t i = 0; i < count; i++)
        got[i] = read_once(&address);
    errno = pthread_join(thread, NULL);
    if (errno != 0)
        die_errno("pthread_join");

    puts("asked\tgot\treply");
    for (size_t i = 0; i < count; i++)
        printf("%d\t%lu\t%lu\n", BUFFER_SIZE, (unsigned long)got[i], (unsigned long)server.size);
    samples_finish();
    free(got);
    exit(EXIT_SUCCESS); /* not return: dietlibc has the errno of main in the frame it returns to */
}
