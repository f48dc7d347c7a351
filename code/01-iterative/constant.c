/*
 * constant.c: the web server of the 2003 talk, made right. It sends the same reply to
 * every client, one client at a time.
 *
 * Run: build/bin/constant [PORT]   Poke: build/bin/00-client -v http://127.0.0.1:8080/
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "die.h"

#define TEXT "That's it.  You're welcome."

static const char reply[] = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n" TEXT;

/* Reads until the empty line that ends a request: it may come in pieces, and it may never come. */
static int read_request(int fd)
{
    char request[4096];
    size_t have = 0;

    while (memmem(request, have, "\r\n\r\n", 4) == NULL) {
        ssize_t n = recv(fd, request + have, sizeof request - have, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) /* an error, the time-out, the end of the stream, or no room left */
            return -1;
        have += (size_t)n;
    }
    return 0;
}

static void serve_client(int fd)
{
    const struct timeval timeout = {.tv_sec = 23};
    size_t sent = 0;

    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) < 0 ||
        read_request(fd) < 0)
        return;
    while (sent < sizeof reply - 1) {
        ssize_t n = send(fd, reply + sent, sizeof reply - 1 - sent, 0);
        if (n < 0 && errno != EINTR)
            return;
        sent += n > 0 ? (size_t)n : 0; /* send() may take less than it was given */
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char *end = "";
    long port = argc > 1 ? strtol(argv[1], &end, 10) : 8080;
    int on = 1;

    set_program_name(argv[0]);
    if (argc > 2 || *end != '\0' || port < 1 || port > 65535)
        die(EXIT_USAGE, "usage: constant [PORT]");
    addr.sin_port = htons((unsigned short)port);
    signal(SIGPIPE, SIG_IGN); /* else send() to a client that has closed would end the process */

    int listen_fd = socket(AF_INET, SOCK_STREAM, 0);
    if (listen_fd < 0)
        die_errno("socket");
    if (setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
        die_errno("setsockopt SO_REUSEADDR");
    if (bind(listen_fd, (struct sockaddr *)&addr, sizeof addr) < 0)
        die_errno("bind 127.0.0.1:%ld", port);
    if (listen(listen_fd, 1024) < 0)
        die_errno("listen");
    printf("constant: listening on http://127.0.0.1:%ld/\n", port);
    fflush(stdout);

    /* region: loop */
    for (;;) {
        int fd = accept(listen_fd, NULL, NULL);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                sleep(1); /* the client stays in the queue, so accept() would fail again at once */
            continue;     /* other errors: of one connection, or EINTR */
        }
        serve_client(fd);
        close(fd);
    }
    /* endregion: loop */
}
