#include "herd.h"

#include "die.h"

/* dietlibc does not know all of it. */
#if defined(__linux__) && !defined(__dietlibc__)

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static int wait_poll(int fd)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    return poll(&wanted, 1, -1);
}

static int open_epoll_for(int listen_fd, unsigned events)
{
    struct epoll_event event = {.events = events, .data.fd = listen_fd};
    int fd = epoll_create1(0);
    if (fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, listen_fd, &event) < 0)
        return -1;
    return fd;
}

static int open_epoll(int listen_fd)
{
    return open_epoll_for(listen_fd, EPOLLIN);
}

static int open_exclusive(int listen_fd)
{
    return open_epoll_for(listen_fd, EPOLLIN | EPOLLEXCLUSIVE);
}

static int wait_epoll(int fd)
{
    struct epoll_event event;
    return epoll_wait(fd, &event, 1, -1);
}

static const struct way ways[] = {
    {"accept", false, false, NULL, NULL},
    {"poll", false, true, NULL, wait_poll},
    {"epoll", false, true, open_epoll, wait_epoll},
    {"exclusive", false, true, open_exclusive, wait_epoll},
    {"reuseport", true, false, NULL, NULL},
};

const struct way *way_named(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

int share_port(int fd)
{
    const int on = 1;
    return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
}

unsigned long voluntary_switches(pid_t pid)
{
    char path[64], line[256];
    unsigned long count;
    bool found = false;

    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        die(EXIT_UNSUPPORTED, "%s: %s", path, strerror(errno));
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = sscanf(line, "voluntary_ctxt_switches: %lu", &count) == 1;
    fclose(file);
    if (!found)
        die(EXIT_UNSUPPORTED, "%s does not count context switches", path);
    return count;
}

#else

#include <errno.h>

const struct way *way_named(const char *name)
{
    die(EXIT_UNSUPPORTED, "%s: Linux, with glibc or musl, is needed to count wake-ups", name);
}

int share_port(int fd)
{
    (void)fd;
    errno = EINVAL;
    return -1;
}

unsigned long voluntary_switches(pid_t pid)
{
    (void)pid;
    die(EXIT_UNSUPPORTED, "context switches are not counted here");
}

#endif
