#include "accept_ways.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct accept_way ways[] = {
    {"accept", false, 0},
    {"epoll", false, EPOLLIN},
    {"exclusive", false, EPOLLIN | EPOLLEXCLUSIVE},
    {"reuseport", true, 0},
};

const struct accept_way *accept_way_named(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

int accept_way_open(const struct accept_way *way, int listen_fd)
{
    struct epoll_event event = {.events = way->events, .data.fd = listen_fd};

    if (way->events == 0)
        return listen_fd;
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, listen_fd, &event) < 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int accept_way_next(const struct accept_way *way, int wait_fd, int listen_fd)
{
    struct epoll_event event;

    for (;;) {
        if (way->events != 0 && epoll_wait(wait_fd, &event, 1, -1) < 0 && errno != EINTR)
            return -1;
        int connection = accept(listen_fd, NULL, NULL);
        /* EAGAIN: another process was woken too, and was quicker. */
        if (connection >= 0 || (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED))
            return connection;
    }
}
