/*
 * 06-select: one process that waits for all clients in one call. select(2) tells which descriptors
 * are ready, of those below FD_SETSIZE.
 *
 * Run:  build/bin/06-select -p 8080 /usr/share/doc
 * Poke: strace -e trace=select,pselect6 build/bin/06-select -p 8080 /usr/share/doc
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/time.h>

#include "06-select/clients.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

/* select() overwrites what it is given, so it gets copies of these. */
static fd_set read_set, write_set;
static struct client *who[FD_SETSIZE];
static int highest;

static void watch(struct client *c)
{
    FD_CLR(c->conn.fd, c->want == WANT_WRITE ? &read_set : &write_set);
    FD_SET(c->conn.fd, c->want == WANT_WRITE ? &write_set : &read_set);
}

static bool enter(struct client *c)
{
    /* With fd >= FD_SETSIZE FD_SET() writes past the array, or _FORTIFY_SOURCE ends the program. */
    if (c->conn.fd >= FD_SETSIZE)
        return false;
    who[c->conn.fd] = c;
    highest = c->conn.fd > highest ? c->conn.fd : highest;
    watch(c);
    return true;
}

static void forget(struct client *c)
{
    FD_CLR(c->conn.fd, &read_set);
    FD_CLR(c->conn.fd, &write_set);
    who[c->conn.fd] = NULL;
    while (highest > 0 && who[highest] == NULL)
        highest--;
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
        bool stop = stopping; /* looked at once: a signal from here on makes listen_fd readable */
        if (stop)
            clients_stop();
        fd_set readable = read_set, writable = write_set;
        int timeout_ms = clients_timeout_ms();
        struct timeval limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
        if (!clients_pending && !stop)
            FD_SET(listen_fd, &readable);
        int nready = select((highest > listen_fd ? highest : listen_fd) + 1, &readable, &writable,
                            NULL, timeout_ms < 0 ? NULL : &limit);
        if (nready < 0 && errno != EINTR)
            die_errno("select");
        if (nready > 0 && FD_ISSET(listen_fd, &readable))
            clients_pending = true;
        for (int fd = 0; nready > 0 && fd <= highest; fd++)
            if (who[fd] != NULL && (FD_ISSET(fd, &readable) || FD_ISSET(fd, &writable)))
                handle(who[fd]);
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

    options_parse(&o, argc, argv, "a web server that waits for all clients with select()");
    stop_on_signals();
    int listen_fd = tcp_listen_nonblocking(&o);
    if (listen_fd >= FD_SETSIZE)
        die(EXIT_FAILURE, "select: descriptor %d: it takes those below %d", listen_fd, FD_SETSIZE);
    tcp_ready(listen_fd, &o);
    event_loop(listen_fd, &o);
    return EXIT_SUCCESS;
}
