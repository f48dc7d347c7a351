/*
 * 16-coroutines: the loop of 09-epoll, with a stack for each connection. So the code that serves it
 * (serve.c) is written as for a thread, and waits in the middle of a function. Yet there is only
 * one thread: the loop waits for all connections, and resumes those that can go on.
 *
 * Run:  build/bin/16-coroutines -p 8080 /usr/share/doc
 * Poke: sleep 9 > /dev/tcp/127.0.0.1/8080 &       (bash: a client that connects and says nothing)
 *       grep -c '^Size: *64 kB' /proc/$(pgrep -x 16-coroutines)/smaps                    (stacks)
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "06-select/clients.h"
#include "16-coroutines/coroutine.h"
#include "16-coroutines/serve.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

static int epoll_fd;

/* By descriptor: a small number, and no two clients have the same. */
static struct coroutine **coroutines;
static int room; /* entries that fit into `coroutines` */

static bool make_place(int fd)
{
    if (fd < room)
        return true;
    int wanted = 2 * fd + EVENTS;
    struct coroutine **larger = realloc(coroutines, (size_t)wanted * sizeof *larger);
    if (larger == NULL)
        return false;
    coroutines = larger;
    room = wanted;
    return true;
}

/* The turn() that clients_handle() calls: resumes the coroutine, and says why. */
static enum want go_on(struct conn *c)
{
    return (enum want)coroutine_resume(coroutines[c->fd], READY);
}

static enum want be_late(struct conn *c)
{
    return (enum want)coroutine_resume(coroutines[c->fd], TOO_LATE);
}

static bool register_interest(struct client *c, int op)
{
    struct epoll_event event = {.data.ptr = c};

    event.events = c->want == WANT_WRITE ? EPOLLOUT : EPOLLIN;
    return epoll_ctl(epoll_fd, op, c->conn.fd, &event) == 0;
}

static bool enter(struct client *c)
{
    struct coroutine *co = make_place(c->conn.fd) ? coroutine_new(serve_conn, &c->conn) : NULL;

    if (co == NULL)
        return false;
    coroutines[c->conn.fd] = co;
    if (register_interest(c, EPOLL_CTL_ADD)) /* no DEL: close() takes the descriptor out */
        return true;
    coroutine_free(co);
    return false;
}

/* A stack must not be freed while a function on it holds something, such as an open file: it has to
 * return first. A connection that the server ends, to make room, is resumed for that. */
static void unwind(struct client *c)
{
    struct coroutine *co = coroutines[c->conn.fd];

    if (!coroutine_is_over(co))
        coroutine_resume(co, MUST_END);
    coroutine_free(co);
    close(c->conn.fd);
    clients_free(c);
}

static void handle(struct client *c, enum want (*turn)(struct conn *c))
{
    if (clients_handle(c, turn) && !register_interest(c, EPOLL_CTL_MOD))
        clients_end(c);
}

static void begin(struct client *c)
{
    if (enter(c))
        handle(c, go_on); /* its request may be here already */
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
                handle(c, go_on);
            else
                clients_pending = true;
        }
        while ((c = clients_next_again()) != NULL)
            handle(c, go_on);
        clients_accept(listen_fd, o, begin);
        while ((c = clients_next_overdue()) != NULL)
            handle(c, be_late); /* a request that came in time may be served */
        while ((c = clients_next_ended()) != NULL)
            unwind(c);
    }
}

int main(int argc, char **argv)
{
    struct options o;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};

    options_parse(&o, argc, argv, "a web server with a coroutine for each connection");
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
