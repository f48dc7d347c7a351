/*
 * accept_ways.h: four ways in which several processes wait for the connections to one address.
 *
 *   accept     all sleep in accept() on one socket
 *   epoll      all sleep in epoll_wait(), each on an epoll descriptor of its own, and then accept
 *   exclusive  the same with EPOLLEXCLUSIVE
 *   reuseport  each sleeps in accept() on a socket of its own (SO_REUSEPORT)
 */
#ifndef ACCEPT_WAYS_H
#define ACCEPT_WAYS_H

#include <stdbool.h>
#include <stdint.h>

struct accept_way {
    const char *name;
    bool own_socket; /* each process has a listening socket, all on one port */
    uint32_t events; /* of epoll; then the listening socket must not block. 0: accept() sleeps */
};

#define ACCEPT_WAYS "accept|epoll|exclusive|reuseport"

/* NULL if there is none of that name. */
const struct accept_way *accept_way_named(const char *name);

/* What one process sleeps on for listen_fd, to be opened after fork(): else the processes would
 * share one epoll. -1 with errno. */
int accept_way_open(const struct accept_way *way, int listen_fd);

/* Sleeps until this process has the next connection, which it returns; -1 with errno.
 * wait_fd: from accept_way_open(). */
int accept_way_next(const struct accept_way *way, int wait_fd, int listen_fd);

#endif
