/*
 * herd.h: how processes can wait for the connections of one address.
 */
#ifndef HERD_H
#define HERD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct way {
    const char *name;
    bool own_socket;  /* each process listens itself, with SO_REUSEPORT, on the same port */
    bool nonblocking; /* wait() may return although another process has taken the connection */
    /* What to wait on for listen_fd, once for each process; -1 with errno. NULL: listen_fd. */
    int (*open)(int listen_fd);
    /* Sleeps until there may be a connection; -1 with errno. NULL: accept() does. */
    int (*wait)(int fd);
};

/* NULL if there is none of that name, or this system does not have it. */
const struct way *way_named(const char *name);

/* Allows that several sockets listen on one port; -1 with errno. */
int share_port(int fd);

/* How often a process has gone to sleep of its own accord; dies, with EXIT_UNSUPPORTED where the
 * system does not tell. */
unsigned long voluntary_switches(pid_t pid);

#endif
