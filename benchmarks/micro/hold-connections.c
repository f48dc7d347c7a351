/*
 * hold-connections: what does a server pay for connections that ask for nothing more?
 *
 * Opens CONNECTIONS connections to 127.0.0.1:PORT, asks on each once, with HEAD for PATH, reads the
 * reply, and keeps them open: as a browser does between two pages. Prints a line when all are
 * there, and then sleeps until a signal ends it, or for HOLD_FOR seconds: nobody who counts a
 * server's memory needs longer, and nothing of it must stay behind.
 * Needs: a descriptor for each connection (ulimit -n). A server that closes instead of keeping a
 * connection is an error, as is one that lets us wait for PATIENCE seconds.
 * Run:   hold-connections -n 100 -p 8080 /index.html
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

#define MAX_CONNECTIONS 100000
#define HOLD_FOR        300
#define PATIENCE        10
#define HEAD_SIZE       4096

static int dial(in_port_t port)
{
    const struct timeval patience = {.tv_sec = PATIENCE};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        die_errno("socket");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0)
        die_errno("setsockopt SO_RCVTIMEO");
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) < 0)
        die_errno("connect");
    return fd;
}

/* The reply to HEAD ends with its head, so nothing of it is left in the socket. */
static void read_reply(int fd)
{
    char head[HEAD_SIZE + 1];
    size_t size = 0;

    while (size < HEAD_SIZE) {
        ssize_t n = recv(fd, head + size, HEAD_SIZE - size, 0);
        if (n < 0)
            die_errno("recv");
        if (n == 0)
            die(EXIT_FAILURE, "the server has closed a connection");
        size += (size_t)n;
        head[size] = '\0';
        if (size >= 4 && strcmp(head + size - 4, "\r\n\r\n") == 0) {
            if (strncmp(head, "HTTP/1.1 200 ", 13) != 0)
                die(EXIT_FAILURE, "expected a page, got %.*s", (int)strcspn(head, "\r\n"), head);
            return;
        }
    }
    die(EXIT_FAILURE, "a reply whose head is longer than %d bytes", HEAD_SIZE);
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "CONNECTIONS", 1, MAX_CONNECTIONS, 100, 0},
        {'p', "PORT", 1, 65535, 8080, 0},
    };
    char request[1024];
    char **path = read_command_line(argc, argv, &(struct command_line){options, 2, "PATH", 1, 1});
    int size =
        snprintf(request, sizeof request, "HEAD %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", *path);
    if (size < 0 || (size_t)size >= sizeof request)
        die(EXIT_FAILURE, "PATH is too long");

    alarm(HOLD_FOR);
    for (size_t i = 0; i < options[0].value; i++) {
        int fd = dial((in_port_t)options[1].value);
        if (send(fd, request, (size_t)size, MSG_NOSIGNAL) != size)
            die_errno("send");
        read_reply(fd);
    }
    printf("holding %lu connections\n", (unsigned long)options[0].value);
    samples_finish();
    pause();
    return EXIT_SUCCESS;
}
