/*
 * 11-sendfile: waits as 09-epoll does. What changes is how a reply is sent: the kernel sends the
 * file from its own memory, and the head in the same packet. -s chooses a way to send
 * (send_path.c); by default join_more.c sends the head, body_sendfile_linux.c the body.
 *
 * Run:  build/bin/11-sendfile -p 8080 /usr/share/doc    (-s two+read: the simplest way)
 * Poke: strace -e trace=sendto,sendfile build/bin/11-sendfile -p 8080 /usr/share/doc
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "06-select/clients.h"
#include "11-sendfile/send_path.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

static int epoll_fd;

/* The kernel returns the pointer with each event: no table has to be searched. */
static bool register_interest(struct client *c, int op)
{
    struct epoll_event event = {.data.ptr = c};

    event.events = c->want == WANT_WRITE ? EPOLLOUT : EPOLLIN;
    return epoll_ctl(epoll_fd, op, c->conn.fd, &event) == 0;
}

static void watch(struct client *c)
{
    if (!register_interest(c, EPOLL_CTL_MOD))
        clients_end(c);
}

static bool enter(struct client *c)
{
    send_path_begin(&c->conn);
    return register_interest(c, EPOLL_CTL_ADD); /* no DEL: close() takes the descriptor out */
}

static void handle(struct client *c)
{
    if (clients_handle(c, conn_handle))
        watch(c);
}

static void begin(struct client *c)
{
    if (enter(c))
        handle(c); /* its request may be here already */
    else
        clients_refuse(c);
}

static void event_loop(int listen_fd, const struct options *o)
{
    struct epoll_event events[EVENTS];
    struct client *c;

    while (!stopping || clients_count() > 0) {
        if (stopping)
            clients_stop();
        int nready = epoll_wait(epoll_fd, events, EVENTS, clients_timeout_ms());
        if (nready < 0 && errno != EINTR)
            die_errno("epoll_wait");
        for (int i = 0; i < nready; i++) {
            c = events[i].data.ptr;
            if (c != NULL)
                handle(c);
            else
                clients_pending = true;
        }
        while ((c = clients_next_again()) != NULL)
            handle(c);
        clients_accept(listen_fd, o, begin);
        while ((c = clients_next_overdue()) != NULL)
            clients_handle(c, conn_expire);
        while ((c = clients_next_ended()) != NULL) {
            conn_end(&c->conn);
            clients_free(c);
        }
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
    int listen_fd = tcp_listen_nonblocking(&o);
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &event) < 0)
        die_errno("epoll_ctl");
    tcp_ready(listen_fd, &o);
    event_loop(listen_fd, &o);
    return EXIT_SUCCESS;
}
