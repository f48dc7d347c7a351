/*
 * 07-poll: as many clients as there are descriptors, in an array that goes to the kernel with every
 * call, whole, and comes back, whole.
 *
 * Run:  build/bin/07-poll -p 8080 /usr/share/doc
 * Poke: strace -e trace=poll build/bin/07-poll -p 8080 /usr/share/doc
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "06-select/clients.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

#define ACCEPTS 16 /* in a turn at most: a flood of guests must not keep the clients waiting */

static bool guests; /* connections may wait to be accepted */

/* region: array */
/* fds[0] is the listening socket, fds[i] that of who[i]. No gaps: each would cost what a client
 * costs. */
static struct pollfd *fds;
static struct client **who;
static int used, room;

static void watch(struct client *c)
{
    /* solution: watch */
    fds[c->place].events = c->want == WANT_WRITE ? POLLOUT : POLLIN;
    /* endsolution: watch */
}

static bool has_room(int place)
{
    int more = room > 0 ? 2 * room : 64;

    if (place < room)
        return true;
    more = more > place ? more : place + 1;
    struct pollfd *new_fds = realloc(fds, (size_t)more * sizeof *fds);
    fds = new_fds != NULL ? new_fds : fds;
    struct client **new_who = realloc(who, (size_t)more * sizeof *who);
    who = new_who != NULL ? new_who : who;
    if (new_fds == NULL || new_who == NULL)
        return false;
    room = more;
    return true;
}

static bool enter(struct client *c)
{
    /* solution: enter */
    if (!has_room(used))
        return false;
    c->place = used++;
    who[c->place] = c;
    fds[c->place].fd = c->conn.fd;
    watch(c);
    return true;
    /* endsolution: enter */
}

static void forget(struct client *c)
{
    /* solution: forget */
    used--;
    fds[c->place] = fds[used]; /* the last one moves in */
    who[c->place] = who[used];
    who[c->place]->place = c->place;
    /* endsolution: forget */
}
/* endregion: array */

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
    struct client *c;

    while (!stopping || clients_count() > 0) {
        /* solution: loop */
        fds[0].fd = guests || stopping ? -1 : listen_fd; /* first: a signal may come in between */
        if (stopping)
            clients_stop();
        int turns = clients_again(); /* whoever is served below has had a turn */
        int nready = poll(fds, (nfds_t)used, clients_patience(guests));
        if (nready < 0 && errno != EINTR)
            die_errno("poll");
        if (nready > 0 && fds[0].revents != 0)
            guests = true;
        for (int i = 1, n = used; nready > 0 && i < n; i++)
            if (fds[i].revents != 0)
                handle(who[i]);
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

    options_parse(&o, argc, argv, "a web server that waits for all clients with poll()");
    stop_on_signals();
    int listen_fd = tcp_listen(&o);
    stop_wakes(listen_fd, -1);
    if (fcntl(listen_fd, F_SETFL, O_NONBLOCK) < 0) /* who knocked may have left since */
        die_errno("fcntl");
    if (!has_room(used))
        die_errno("malloc");
    used = 1;
    fds[0] = (struct pollfd){.events = POLLIN};
    event_loop(listen_fd, &o);
    return EXIT_SUCCESS;
}
