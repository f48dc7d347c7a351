/*
 * 07-poll: as many clients as there are descriptors. The array of all of them goes to the kernel
 * and back with every call.
 *
 * Run:  build/bin/07-poll -p 8080 /usr/share/doc
 * Poke: strace -e trace=poll build/bin/07-poll -p 8080 /usr/share/doc
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "06-select/clients.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

/* fds[0] is the listening socket, fds[i] that of who[i]. No gaps: poll() looks at each entry. */
static struct pollfd *fds;
static struct client **who;
static int used, room;

static void watch(struct client *c)
{
    fds[c->place].events = c->want == WANT_WRITE ? POLLOUT : POLLIN;
}

static bool has_room(void)
{
    int more = room > 0 ? 2 * room : 64;

    if (used < room)
        return true;
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
    if (!has_room())
        return false;
    c->place = used++;
    who[c->place] = c;
    fds[c->place].fd = c->conn.fd;
    watch(c);
    return true;
}

static void forget(struct client *c)
{
    used--;
    fds[c->place] = fds[used]; /* the last one moves in */
    who[c->place] = who[used];
    who[c->place]->place = c->place;
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
    struct client *c;

    while (!stopping || clients_count() > 0) {
        /* Before the test below: if a signal comes in between, poll() has listen_fd and returns. */
        fds[0].fd = clients_pending || stopping ? -1 : listen_fd;
        if (stopping)
            clients_stop();
        int nready = poll(fds, (nfds_t)used, clients_timeout_ms());
        if (nready < 0 && errno != EINTR)
            die_errno("poll");
        if (nready > 0 && fds[0].revents != 0)
            clients_pending = true;
        for (int i = 1, n = used; nready > 0 && i < n; i++)
            if (fds[i].revents != 0)
                handle(who[i]);
        while ((c = clients_next_again()) != NULL)
            handle(c);
        clients_accept(listen_fd, o, begin);
        while ((c = clients_next_overdue()) != NULL)
            clients_handle(c, conn_expire);
        while ((c = clients_next_ended()) != NULL) {
            forget(c);
            conn_end(&c->conn);
            clients_free(c);
        }
    }
}

int main(int argc, char **argv)
{
    struct options o;

    options_parse(&o, argc, argv, "a web server that waits for all clients with poll()");
    stop_on_signals();
    int listen_fd = tcp_listen_nonblocking(&o);
    if (!has_room())
        die_errno("malloc");
    used = 1;
    fds[0] = (struct pollfd){.events = POLLIN};
    tcp_ready(listen_fd, &o);
    event_loop(listen_fd, &o);
    return EXIT_SUCCESS;
}
