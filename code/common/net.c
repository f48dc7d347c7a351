#include "net.h"
#include "die.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Numeric addresses only: a server that waits for a name server at its start is a surprise. */
static socklen_t parse_address(union address *a, const char *text, int port)
{
    memset(a, 0, sizeof *a);
    bool any = *text != '\0'; /* nothing at all is an address to dietlibc's inet_pton() */
    if (any && inet_pton(AF_INET, text, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons((unsigned short)port);
        return sizeof a->v4;
    }
    if (any && inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1) {
        a->v6.sin6_family = AF_INET6;
        a->v6.sin6_port = htons((unsigned short)port);
        return sizeof a->v6;
    }
    die(EXIT_FAILURE, "-a %s: not an IPv4 or IPv6 address", text);
}

static void print_listening(int fd, const struct options *o)
{
    union address a;
    socklen_t len = sizeof a;

    if (getsockname(fd, &a.any, &len) < 0)
        die_errno("getsockname");
    bool v6 = a.any.sa_family == AF_INET6;
    int n = printf("%s: listening on http://%s%s%s:%d/\n", program_name, v6 ? "[" : "", o->addr,
                   v6 ? "]" : "", ntohs(v6 ? a.v6.sin6_port : a.v4.sin_port));
    if (n < 0 || fflush(stdout) != 0) /* musl writes in the one, glibc in the other */
        die_errno("write to stdout");
}

int tcp_listen(const struct options *o)
{
    union address a;
    socklen_t len = parse_address(&a, o->addr, o->port);
    int on = 1;

    /* A client that has gone away is an error of its connection (EPIPE), not our end. */
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        die_errno("signal SIGPIPE");
    int fd = socket(a.any.sa_family, SOCK_STREAM, 0);
    if (fd < 0)
        die_errno("socket");
    /* Else a restarted server cannot have its port until the old connections are forgotten. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
        die_errno("setsockopt SO_REUSEADDR");
    if (bind(fd, &a.any, len) < 0)
        die_errno("bind %s:%d", o->addr, o->port);
    if (listen(fd, o->backlog) < 0)
        die_errno("listen %s:%d", o->addr, o->port);
    print_listening(fd, o);
    return fd;
}

/* region: accept-errors */
bool accept_is_broken(int error)
{
    return error == EBADF || error == EFAULT || error == EINVAL || error == ENOTSOCK;
}

bool accept_lacks_room(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

bool accept_may_continue(int error)
{
    if (accept_lacks_room(error))
        poll(NULL, 0, 100);
    return !accept_is_broken(
        error); /* EINTR, ECONNABORTED, errors of the new connection's network */
}
/* endregion: accept-errors */
