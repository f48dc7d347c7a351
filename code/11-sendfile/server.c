/*
 * 11-sendfile: the waiting is that of 09-epoll. What changes is how a reply leaves: the kernel
 * sends the file from its own memory, and the head in the same packet. -s chooses among the ways
 * to do that.
 *
 * Run:  build/bin/11-sendfile -p 8080 /usr/share/doc    (-s two+read: as everybody begins)
 * Poke: strace -e trace=sendto,sendfile build/bin/11-sendfile -p 8080 /usr/share/doc
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "06-select/clients.h"
#include "11-sendfile/send_path.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

#define ACCEPTS 16 /* in a turn at most: a flood of guests must not keep the clients waiting */
#define EVENTS  256

static bool guests; /* connections may wait to be accepted */
static int epoll_fd;

/* The kernel gives the pointer back with each event: no table has to be searched. */
static bool tell_kernel(struct client *c, int op)
{
    /* solution: tell */
    struct epoll_event event = {.data.ptr = c};

    event.events = c->want == WANT_WRITE ? EPOLLOUT : EPOLLIN;
    return epoll_ctl(epoll_fd, op, c->conn.fd, &event) == 0;
    /* endsolution: tell */
}

static void watch(struct client *c)
{
    if (!tell_kernel(c, EPOLL_CTL_MOD))
        clients_end(c);
}

static bool enter(struct client *c)
{
    send_path_begin(c->conn.fd);
    return tell_kernel(c, EPOLL_CTL_ADD); /* and no DEL: a closed descriptor leaves by itself */
}

static void handle(struct client *c)
{
    if (clients_handle(c))
        watch(c);
}

static void begin_client(int fd, const struct options *o)
{
    struct client *c = clients_add(fd, o);

    if (c == NULL)
        return;
    if (enter(c))
        handle(c); /* its request may be here already */
    else
        clients_refuse(c);
}

/* Returns whether guests may be left. */
static bool accept_some(int listen_fd, const struct options *o)
{
    /* solution: accept */
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept(listen_fd, NULL, NULL);
        if (fd >= 0) {
            begin_client(fd, o);
        } else if (errno == EAGAIN || stopping) {
            return false;
        } else if (accept_lacks_room(errno)) {
            clients_lack_room();
            return true;
        } else if (accept_is_broken(errno)) {
            die_errno("accept");
        }
    }
    return true;
    /* endsolution: accept */
}

static void event_loop(int listen_fd, const struct options *o)
{
    struct epoll_event events[EVENTS];
    struct client *c;

    while (!stopping || clients_count() > 0) {
        /* solution: turns */
        if (stopping)
            clients_stop();
        int turns = clients_again(); /* whoever is served below has had a turn */
        /* endsolution: turns */
        int nready = epoll_wait(epoll_fd, events, EVENTS, clients_patience(guests));
        if (nready < 0 && errno != EINTR)
            die_errno("epoll_wait");
        for (int i = 0; i < nready; i++) {
            c = events[i].data.ptr;
            if (c != NULL)
                handle(c);
            else
                guests = true;
        }
        /* solution: again */
        for (; turns > 0 && (c = clients_next_again()) != NULL; turns--)
            handle(c);
        /* endsolution: again */
        if (guests && clients_may_come())
            guests = !stopping && accept_some(listen_fd, o);
        clients_overdue();
        while ((c = clients_next_ended()) != NULL)
            clients_free(c);
    }
}

int main(int argc, char **argv)
{
    struct options o;
    struct own_option own = {'s', "WAY", SEND_PATH_HELP, NULL};
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};

    options_parse_own(&o, argc, argv, "a web server whose files are sent by the kernel", &own, 1);
    send_path_choose(own.value);
    stop_on_signals();
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        die_errno("epoll_create1");
    int listen_fd = tcp_listen(&o);
    stop_wakes(listen_fd, -1);
    if (fcntl(listen_fd, F_SETFL, O_NONBLOCK) < 0) /* who knocked may have left since */
        die_errno("fcntl");
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &event) < 0)
        die_errno("epoll_ctl");
    event_loop(listen_fd, &o);
    return EXIT_SUCCESS;
}
