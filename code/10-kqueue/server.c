/*
 * 10-kqueue: as epoll, but changes to the list go along with the wait, and descriptors are one kind
 * of event among others. For the BSDs and macOS; on Linux over linux/kqueue.c.
 *
 * Run:  build/bin/10-kqueue -p 8080 /usr/share/doc
 * Poke: strace -e trace=epoll_ctl,epoll_wait build/bin/10-kqueue -p 8080 /usr/share/doc
 */
#include <sys/types.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/event.h>
#include <sys/time.h>
#include <time.h>

#include "06-select/clients.h"
#include "10-kqueue/closing.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

static int queue;

/* Changes that the next kevent() takes along. */
static struct kevent changes[EVENTS];
static int nchanges;

/* If a change failed no event of this client would ever come: end it. */
static void end_refused(const struct kevent *answer)
{
    if (answer->data != 0)
        clients_end(answer->udata);
}

/* The list is full. EV_RECEIPT: kevent() returns an answer for each change, and no events. */
static void apply_changes(void)
{
    for (int i = 0; i < nchanges; i++)
        changes[i].flags |= EV_RECEIPT;
    int n = kevent(queue, changes, nchanges, changes, nchanges, NULL);
    if (n < 0)
        die_errno("kevent");
    for (int i = 0; i < n; i++)
        end_refused(&changes[i]);
    nchanges = 0;
}

static void change(struct client *c, short filter, unsigned short flags)
{
    if (nchanges == EVENTS)
        apply_changes();
    EV_SET(&changes[nchanges++], (uintptr_t)c->conn.fd, filter, flags, 0, 0, c);
}

static void watch(struct client *c)
{
    change(c, EVFILT_READ, c->want == WANT_READ ? EV_ENABLE : EV_DISABLE);
    change(c, EVFILT_WRITE, c->want == WANT_WRITE ? EV_ENABLE : EV_DISABLE);
}

static bool enter(struct client *c)
{
    change(c, EVFILT_READ, EV_ADD);
    change(c, EVFILT_WRITE, EV_ADD | EV_DISABLE);
    return true; /* if the kernel refuses, EV_ERROR says so later */
}

/* Else an answer would point to a client that is freed. */
static void forget(const struct client *c)
{
    int kept = 0;

    for (int i = 0; i < nchanges; i++)
        if (changes[i].udata != c)
            changes[kept++] = changes[i];
    nchanges = kept;
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

/* Answers to failed changes come instead of events. Short connections may leave some in every turn,
 * and no event would ever be taken: so after answers alone, ask once more for events. */
static int wait_for_events(struct kevent *events, const struct timespec *limit)
{
    int answers = 0, nready = kevent(queue, changes, nchanges, events, EVENTS, limit);

    nchanges = 0;
    while (answers < nready && (events[answers].flags & EV_ERROR) != 0)
        answers++;
    if (answers == 0 || answers < nready)
        return nready;
    for (int i = 0; i < answers; i++)
        end_refused(&events[i]);
    return kevent(queue, NULL, 0, events, EVENTS, &(struct timespec){0});
}

static void event_loop(int listen_fd, const struct options *o)
{
    struct kevent events[EVENTS];
    struct client *c;

    while (!stopping || clients_count() > 0) {
        if (stopping)
            clients_stop();
        int timeout_ms = clients_timeout_ms();
        struct timespec limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
        int nready = wait_for_events(events, timeout_ms < 0 ? NULL : &limit);
        if (nready < 0 && errno != EINTR)
            die_errno("kevent");
        for (int i = 0; i < nready; i++) {
            c = events[i].udata;
            if (events[i].filter == EVFILT_SIGNAL)
                stop_begin(); /* a second time, if the handler has run: harmless */
            else if (events[i].flags & EV_ERROR)
                end_refused(&events[i]);
            else if (c != NULL)
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
            forget(c);
            before_close(queue, c->conn.fd);
            conn_end(&c->conn);
            clients_free(c);
        }
    }
}

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
    /* A signal ends the wait. NetBSD makes no event of a listening socket that was shut. */
    EV_SET(&first[0], SIGTERM, EVFILT_SIGNAL, EV_ADD, 0, 0, NULL);
    EV_SET(&first[1], SIGINT, EVFILT_SIGNAL, EV_ADD, 0, 0, NULL);
    if (kevent(queue, first, 2, NULL, 0, NULL) < 0)
        die_errno("kevent");
    /* endregion: first */
    int listen_fd = tcp_listen_nonblocking(&o);
    EV_SET(&first[0], (uintptr_t)listen_fd, EVFILT_READ, EV_ADD | EV_CLEAR, 0, 0, NULL);
    if (kevent(queue, first, 1, NULL, 0, NULL) < 0)
        die_errno("kevent");
    tcp_ready(listen_fd, &o);
    event_loop(listen_fd, &o);
    return EXIT_SUCCESS;
}
