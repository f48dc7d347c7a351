#include "net.h"
#include "clock.h"
#include "die.h"
#include "privileges.h"
#include "stop.h"
#include "unsent.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
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
    bool any = *text != '\0'; /* dietlibc's inet_pton() takes an empty string */
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

/* One for a client, one for its file: without them no client would ever be sent a file. */
void demand_room(int fd)
{
    int client = dup(fd), file = dup(fd);

    if (client < 0 || file < 0)
        die_errno("a descriptor for a client, and one for a file");
    close(client);
    close(file);
}

void tcp_ready(int fd, const struct options *o)
{
    union address a;
    socklen_t len = sizeof a;

    demand_room(fd);
    privileges_warn();
    if (getsockname(fd, &a.any, &len) < 0)
        die_errno("getsockname");
    bool v6 = a.any.sa_family == AF_INET6;
    int n = printf("%s: listening on http://%s%s%s:%d/\n", program_name, v6 ? "[" : "", o->addr,
                   v6 ? "]" : "", ntohs(v6 ? a.v6.sin6_port : a.v4.sin_port));
    /* musl writes in printf(), glibc in fflush(). EBADF: the program was started without a
     * stdout. */
    if ((n < 0 || fflush(stdout) != 0) && errno != EBADF)
        die_errno("write to stdout");
}

static void switch_on(int fd, int level, int option, const char *name)
{
    int on = 1;

    if (setsockopt(fd, level, option, &on, sizeof on) < 0)
        die_errno("setsockopt %s", name);
}

static int bound_socket(const union address *a, socklen_t len, const struct options *o, bool shared)
{
    int fd = socket(a->any.sa_family, SOCK_STREAM, 0);

    if (fd < 0)
        die_errno("socket");
    /* Else bind() fails after a restart: old connections (TIME_WAIT) keep the port for a minute. */
    switch_on(fd, SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR");
    if (shared)
        switch_on(fd, SOL_SOCKET, SO_REUSEPORT, "SO_REUSEPORT");
    /* Else a short reply waits until the client has acknowledged the one before it, and the client
     * delays that by 40 ms. Accepted sockets inherit this, on Linux and on the BSDs. */
    switch_on(fd, IPPROTO_TCP, TCP_NODELAY, "TCP_NODELAY");
    unsent_limited(fd);
    if (bind(fd, &a->any, len) < 0)
        die_errno("bind %s:%d", o->addr, o->port);
    return fd;
}

int tcp_listen(const struct options *o)
{
    union address a;
    socklen_t len = parse_address(&a, o->addr, o->port);

    int fd = bound_socket(&a, len, o, false);
    if (listen(fd, o->backlog) < 0)
        die_errno("listen %s:%d", o->addr, o->port);
    privileges_drop();
    return fd;
}

int tcp_listen_nonblocking(const struct options *o)
{
    int fd = tcp_listen(o);

    stop_wakes(fd, -1);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        die_errno("fcntl");
    return fd;
}

void tcp_listen_each(const struct options *o, int *fds, int count, void (*prepare)(int fd))
{
    union address a;
    socklen_t len = parse_address(&a, o->addr, o->port);

    /* The first socket only asks for the address and does not share it: bind() fails if another
     * server is there. The others bind to its port by number, also with -p 0: shutdown() takes from
     * a socket the port that the kernel has chosen for it, but not one that bind() was given. */
    int first = bound_socket(&a, len, o, false);
    switch_on(first, SOL_SOCKET, SO_REUSEPORT, "SO_REUSEPORT");
    if (getsockname(first, &a.any, &len) < 0)
        die_errno("getsockname");
    for (int i = 0; i < count; i++)
        fds[i] = bound_socket(&a, len, o, true);
    close(first);
    for (int i = 0; i < count; i++) {
        prepare(fds[i]);
        if (listen(fds[i], o->backlog) < 0)
            die_errno("listen %s:%d", o->addr, o->port);
    }
    privileges_drop();
}

int accept_nonblocking(int listen_fd)
{
#ifdef SOCK_NONBLOCK
    int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
#else /* macOS */
    int fd = accept(listen_fd, NULL, NULL);

    if (fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
        close(fd);
        return -1;
    }
#endif
    if (fd >= 0)
        accept_succeeded();
    return fd;
}

/* By accept(2) these are errors of one connection, and it has left the queue. */
static bool is_of_one_connection(int error)
{
    switch (error) {
    case ECONNABORTED:
    case EINTR:
    case EAGAIN:
    case EPROTO:
    case ENOPROTOOPT:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
#ifdef ENONET /* Linux */
    case ENONET:
#endif
        return true;
    default:
        return false;
    }
}

bool accept_lacks_room(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static int in_a_row;

void accept_succeeded(void)
{
    in_a_row = 0;
}

bool accept_must_pause(int error)
{
    static long long since;
    static int said;

    if (is_of_one_connection(error)) {
        long long now = now_ms();
        in_a_row = now - since < ACCEPT_PAUSE_MS ? in_a_row + 1 : 0;
        since = in_a_row == 0 ? now : since;
        if (in_a_row < ACCEPT_IN_A_ROW)
            return false;
    }
    errno = error;
    if (error == EBADF || error == EFAULT || error == EINVAL || error == ENOTSOCK)
        die_errno("accept");
    if (error != said)
        warn_errno("accept");
    errno = said = error;
    return true;
}

void accept_failed(int error)
{
    if (accept_must_pause(error))
        poll(NULL, 0, ACCEPT_PAUSE_MS);
}
