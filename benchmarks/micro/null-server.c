/*
 * null-server: the least a server can do for a request: epoll_wait(), one recv(), one send of a
 * constant. It understands nothing, checks nothing and knows one reply. What a real server is
 * slower by is its own; what this one takes is the kernel's, and nobody is rid of it.
 *
 *     null-server -f FILE [-n] [-a ADDR] [-p PORT] [DOCROOT]
 *
 * -f  the file below DOCROOT that every reply carries: from memory up to 16 KiB, else by sendfile()
 * -n  one request a connection: its reply and the FIN go in one segment
 *
 * Takes:  HTTP requests, each in one segment of its own, as wrk sends them; others get a reply too
 *         many or too few. Only for measuring, on loopback.
 * Gives:  the line of every server here, and replies until SIGTERM.
 * Source: design: "the null server as the limit"; epoll(7), send(2), sendfile(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "die.h"
#include "net.h"
#include "open_below.h"
#include "options.h"
#include "stop.h"

#define EVENTS      256
#define MEMORY_MOST (16 * 1024)
#define MOST_FDS    65536

static int epoll_fd, file_fd;
static bool once;
static char reply[512 + MEMORY_MOST]; /* the head, and the body if it is small */
static size_t reply_len;
static off_t rest;             /* of the file, by sendfile(); 0: it is in reply */
static off_t unsent[MOST_FDS]; /* of a connection's file, where its socket was full */

static void read_file(const struct options *o, const char *name)
{
    struct stat st;

    file_fd = open_below(o->docroot_fd, name);
    if (file_fd < 0 || fstat(file_fd, &st) < 0)
        die_errno("%s", name);
    int head = snprintf(reply, 512,
                        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                        "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                        "Content-Type: text/html; charset=utf-8\r\nContent-Length: %lld\r\n"
                        "Accept-Ranges: bytes\r\n%s\r\n",
                        (long long)st.st_size, once ? "Connection: close\r\n" : "");
    reply_len = (size_t)head;
    if (st.st_size > MEMORY_MOST) {
        rest = st.st_size;
        return;
    }
    ssize_t n = pread(file_fd, reply + head, (size_t)st.st_size, 0);
    if (n != st.st_size)
        die_errno("read %s", name);
    reply_len += (size_t)n;
}

/* Goes on with the file. The connection is over where that fails, or the client has gone. */
static void send_rest(int fd)
{
    while (unsent[fd] > 0) {
        off_t at = rest - unsent[fd];
        ssize_t n = sendfile(fd, file_fd, &at, (size_t)unsent[fd]);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n == 0 || (n < 0 && errno != EINTR)) {
            close(fd);
            return;
        }
        unsent[fd] -= n > 0 ? n : 0;
    }
    if (once)
        close(fd);
}

static void answer(int fd)
{
    char request[8192];
    ssize_t n = recv(fd, request, sizeof request, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || send(fd, reply, reply_len, once || rest > 0 ? MSG_MORE : 0) < 0) {
        close(fd);
        return;
    }
    unsent[fd] = rest;
    send_rest(fd);
}

static void accept_all(int listen_fd)
{
    int fd;

    while ((fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.fd = fd};
        if (fd >= MOST_FDS) {
            close(fd);
            continue;
        }
        unsent[fd] = 0;
        if (once && rest == 0)
            answer(fd); /* it is there: TCP_DEFER_ACCEPT */
        else if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
            close(fd);
    }
}

static void event_loop(int listen_fd)
{
    struct epoll_event events[EVENTS];

    while (!stopping) {
        int nready = epoll_wait(epoll_fd, events, EVENTS, -1);
        if (nready < 0 && errno != EINTR)
            die_errno("epoll_wait");
        for (int i = 0; i < nready; i++) {
            int fd = events[i].data.fd;
            if (fd == listen_fd)
                accept_all(listen_fd);
            else if (unsent[fd] > 0)
                send_rest(fd);
            else if ((events[i].events & EPOLLIN) != 0)
                answer(fd);
        }
    }
}

int main(int argc, char **argv)
{
    struct options o;
    struct own_option own[] = {
        {'f', "FILE", "the file that every reply carries", NULL},
        {'n', NULL, "one request a connection", NULL},
    };
    struct epoll_event event = {.events = EPOLLIN};
    int on = 1;

    options_parse_own(&o, argc, argv, "answers everything with one file, and looks at nothing", own,
                      2);
    if (own[0].value == NULL)
        die(EXIT_USAGE, "-f is missing: the file that every reply carries");
    once = own[1].value != NULL;
    read_file(&o, own[0].value);
    stop_on_signals();
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        die_errno("epoll_create1");
    int listen_fd = tcp_listen(&o);
    stop_wakes(listen_fd, -1);
    if (fcntl(listen_fd, F_SETFL, O_NONBLOCK) < 0)
        die_errno("fcntl");
    if (setsockopt(listen_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
        (once && setsockopt(listen_fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof on) < 0))
        die_errno("setsockopt");
    event.data.fd = listen_fd;
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &event) < 0)
        die_errno("epoll_ctl");
    tcp_ready(listen_fd, &o);
    event_loop(listen_fd);
    return EXIT_SUCCESS;
}
