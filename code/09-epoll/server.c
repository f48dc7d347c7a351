/*
 * 09-epoll: the kernel keeps the list of descriptors, and tells which are ready, many at a time.
 * The cost of a wait depends on the number of events, not on that of silent clients.
 *
 * Run:  build/bin/09-epoll -p 8080 /usr/share/doc       (-e: edge-triggered)
 * Poke: strace -e trace=epoll_ctl,epoll_wait build/bin/09-epoll -p 8080 /usr/share/doc
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "06-select/clients.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

static int epoll_fd;
static bool edge; /* -e */

static bool register_interest(struct client *c, int op)
{
    /* The kernel returns the pointer with each event: no table has to be searched. */
    struct epoll_event event = {.data.ptr = c};

    if (edge)
        event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    else
        event.events = c->want == WANT_WRITE ? EPOLLOUT : EPOLLIN;
    return epoll_ctl(epoll_fd, op, c->conn.fd, &event) == 0;
}

static void watch(struct client *c)
{
    /* Edge-triggered (-e): both directions are registered once, in enter(). */
    if (!edge && !register_interest(c, EPOLL_CTL_MOD))
        clients_end(c);
}

static bool enter(struct client *c)
{
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
        /* region: answers */
        for (int i = 0; i < nready; i++) {
            c = events[i].data.ptr;
            if (c != NULL)
                handle(c);
            else
                clients_pending = true;
        }
        /* endregion: answers */
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
    struct own_option own = {'e', NULL, "edge-triggered: be told once of each event", NULL};
    struct epoll_event event = {.events = EPOLLIN | EPOLLET}; /* .data.ptr: NULL */

    options_parse_own(&o, argc, argv, "a web server that waits for all clients with epoll", &own,
                      1);
    edge = own.value != NULL;
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
