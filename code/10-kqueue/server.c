/*
 * 10-kqueue: as epoll, but what is to be watched goes along with the wait, and descriptors are only
 * one kind of what can be watched. For FreeBSD, OpenBSD, NetBSD and macOS; on Linux over
 * linux/kqueue.c.
 *
 * Run:  build/bin/10-kqueue -p 8080 /usr/share/doc
 * Poke: strace -e trace=epoll_ctl,epoll_wait build/bin/10-kqueue -p 8080 /usr/share/doc
 */
#include <sys/types.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/event.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include "06-select/clients.h"
#include "10-kqueue/closing.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

#define ACCEPTS 16 /* in a turn at most: a flood of guests must not keep the clients waiting */
#define EVENTS  256

static bool guests; /* connections may wait to be accepted */
static int queue;

/* region: changes */
/* What the kernel is told with the next kevent(). */
static struct kevent changes[EVENTS];
static int nchanges;

/* What could not be registered would never be told of. One that is closed is not worth a word. */
/* region: refused */
static void end_refused(const struct kevent *answer)
{
    if (answer->data != 0 && answer->data != EBADF)
        clients_end(answer->udata);
}
/* endregion: refused */

/* No room left: now, and without taking an event along. EV_RECEIPT gives each change an answer. */
static void apply_changes(void)
{
    /* solution: apply */
    struct kevent answers[EVENTS];

    for (int i = 0; i < nchanges; i++)
        changes[i].flags |= EV_RECEIPT;
    int n = kevent(queue, changes, nchanges, answers, nchanges, NULL);
    if (n < 0)
        die_errno("kevent");
    for (int i = 0; i < n; i++)
        end_refused(&answers[i]);
    nchanges = 0;
    /* endsolution: apply */
}

static void change(struct client *c, short filter, unsigned short flags)
{
    if (nchanges == EVENTS)
        apply_changes();
    EV_SET(&changes[nchanges++], (uintptr_t)c->conn.fd, filter, flags, 0, 0, c);
}

static void watch(struct client *c)
{
    /* solution: watch */
    change(c, EVFILT_READ, c->want == WANT_READ ? EV_ENABLE : EV_DISABLE);
    change(c, EVFILT_WRITE, c->want == WANT_WRITE ? EV_ENABLE : EV_DISABLE);
    /* endsolution: watch */
}

static bool enter(struct client *c)
{
    /* solution: enter */
    change(c, EVFILT_READ, EV_ADD);
    change(c, EVFILT_WRITE, EV_ADD | EV_DISABLE);
    return true; /* if it cannot be: EV_ERROR, later */
    /* endsolution: enter */
}
/* endregion: changes */

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

/* region: loop */
static void event_loop(int listen_fd, const struct options *o)
{
    struct kevent events[EVENTS];
    struct client *c;

    while (!stopping || clients_count() > 0) {
        /* solution: loop */
        if (stopping)
            clients_stop();
        int turns = clients_again(); /* whoever is served below has had a turn */
        int patience = clients_patience(guests);
        struct timespec limit = {patience / 1000, patience % 1000 * 1000000L};
        int nready = kevent(queue, changes, nchanges, events, EVENTS, patience < 0 ? NULL : &limit);
        if (nready < 0 && errno != EINTR)
            die_errno("kevent");
        nchanges = 0;
        for (int i = 0; i < nready; i++) {
            c = events[i].udata;
            if (events[i].filter == EVFILT_SIGNAL)
                stop_begin(); /* again, where its handler has run */
            else if (events[i].flags & EV_ERROR)
                end_refused(&events[i]);
            else if (c != NULL)
                handle(c);
            else
                guests = true;
        }
        for (; turns > 0 && (c = clients_next_again()) != NULL; turns--)
            handle(c);
        if (guests && clients_may_come())
            guests = !stopping && accept_some(listen_fd, o);
        clients_overdue();
        while ((c = clients_next_ended()) != NULL) {
            before_close(queue, c->conn.fd);
            clients_free(c);
        }
        /* endsolution: loop */
    }
}
/* endregion: loop */

int main(int argc, char **argv)
{
    struct options o;
    struct kevent first[2];

    options_parse(&o, argc, argv, "a web server that waits for all clients with kqueue");
    stop_on_signals();
    queue = kqueue();
    if (queue < 0)
        die_errno("kqueue");
    /* region: first */
    /* Such an event ends the wait. NetBSD makes none of a listening socket that is shut. */
    EV_SET(&first[0], SIGTERM, EVFILT_SIGNAL, EV_ADD, 0, 0, NULL);
    EV_SET(&first[1], SIGINT, EVFILT_SIGNAL, EV_ADD, 0, 0, NULL);
    if (kevent(queue, first, 2, NULL, 0, NULL) < 0)
        die_errno("kevent");
    /* endregion: first */
    int listen_fd = tcp_listen(&o);
    stop_wakes(listen_fd, -1);
    if (fcntl(listen_fd, F_SETFL, O_NONBLOCK) < 0) /* who knocked may have left since */
        die_errno("fcntl");
    EV_SET(&first[0], (uintptr_t)listen_fd, EVFILT_READ, EV_ADD | EV_CLEAR, 0, 0, NULL);
    if (kevent(queue, first, 1, NULL, 0, NULL) < 0)
        die_errno("kevent");
    event_loop(listen_fd, &o);
    return EXIT_SUCCESS;
}
