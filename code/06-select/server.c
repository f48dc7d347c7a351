/*
 * 06-select: one process, and one place to wait for everybody at once. select(2) tells which
 * descriptors are ready, of those below FD_SETSIZE.
 *
 * Run:  build/bin/06-select -p 8080 /usr/share/doc
 * Poke: strace -e trace=select,pselect6 build/bin/06-select -p 8080 /usr/share/doc
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "06-select/clients.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

#define ACCEPTS 16 /* in a turn at most: a flood of guests must not keep the clients waiting */

static bool guests; /* connections may wait to be accepted */

/* region: sets */
/* select() overwrites what it is given, so it gets copies of these. */
static fd_set read_set, write_set;
static struct client *who[FD_SETSIZE];
static int highest;

static void watch(struct client *c)
{
    /* solution: watch */
    FD_CLR(c->conn.fd, c->want == WANT_WRITE ? &read_set : &write_set);
    FD_SET(c->conn.fd, c->want == WANT_WRITE ? &write_set : &read_set);
    /* endsolution: watch */
}

static bool enter(struct client *c)
{
    /* solution: enter */
    /* Its bit would be in some other variable, and nobody looks but us. */
    if (c->conn.fd >= FD_SETSIZE)
        return false;
    who[c->conn.fd] = c;
    highest = c->conn.fd > highest ? c->conn.fd : highest;
    watch(c);
    return true;
    /* endsolution: enter */
}

static void forget(struct client *c)
{
    /* solution: forget */
    FD_CLR(c->conn.fd, &read_set);
    FD_CLR(c->conn.fd, &write_set);
    who[c->conn.fd] = NULL;
    while (highest > 0 && who[highest] == NULL)
        highest--;
    /* endsolution: forget */
}
/* endregion: sets */

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

/* region: accept */
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
/* endregion: accept */

/* region: loop */
static void event_loop(int listen_fd, const struct options *o)
{
    struct client *c;

    while (!stopping || clients_count() > 0) {
        /* solution: loop */
        bool stop = stopping; /* looked at once: a signal from here on makes listen_fd readable */
        if (stop)
            clients_stop();
        int turns = clients_again(); /* whoever is served below has had a turn */
        fd_set readable = read_set, writable = write_set;
        int patience = clients_patience(guests);
        struct timeval limit = {patience / 1000, patience % 1000 * 1000};
        if (!guests && !stop)
            FD_SET(listen_fd, &readable);
        int nready = select((highest > listen_fd ? highest : listen_fd) + 1, &readable, &writable,
                            NULL, patience < 0 ? NULL : &limit);
        if (nready < 0 && errno != EINTR)
            die_errno("select");
        if (nready > 0 && FD_ISSET(listen_fd, &readable))
            guests = true;
        for (int fd = 0; nready > 0 && fd <= highest; fd++)
            if (who[fd] != NULL && (FD_ISSET(fd, &readable) || FD_ISSET(fd, &writable)))
                handle(who[fd]);
        for (; turns > 0 && (c = clients_next_again()) != NULL; turns--)
            handle(c);
        if (guests && clients_may_come())
            guests = !stopping && accept_some(listen_fd, o);
        clients_overdue();
        while ((c = clients_next_ended()) != NULL) {
            forget(c);
            clients_free(c);
        }
        /* endsolution: loop */
    }
}
/* endregion: loop */

int main(int argc, char **argv)
{
    struct options o;

    options_parse(&o, argc, argv, "a web server that waits for all clients with select()");
    stop_on_signals();
    int listen_fd = tcp_listen(&o);
    stop_wakes(listen_fd, -1);
    if (fcntl(listen_fd, F_SETFL, O_NONBLOCK) < 0) /* who knocked may have left since */
        die_errno("fcntl");
    if (listen_fd >= FD_SETSIZE)
        die(EXIT_FAILURE, "select: descriptor %d: it takes those below %d", listen_fd, FD_SETSIZE);
    event_loop(listen_fd, &o);
    return EXIT_SUCCESS;
}
