#include "facts.h"

#include "die.h"

#if defined(__linux__)

#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void add(int epoll_fd, int fd, uint32_t events, uint64_t cookie)
{
    struct epoll_event event = {.events = events, .data.u64 = cookie};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == -1)
        die_errno("epoll_ctl");
}

/* How many events there are, without waiting; the last of them in *event. */
static int look(int epoll_fd, struct epoll_event *event)
{
    int n = epoll_wait(epoll_fd, event, 1, 0);
    if (n == -1)
        die_errno("epoll_wait");
    return n;
}

static int constants_equal(void)
{
    return ((int)EPOLLIN == POLLIN) + ((int)EPOLLPRI == POLLPRI) + ((int)EPOLLOUT == POLLOUT) +
           ((int)EPOLLERR == POLLERR) + ((int)EPOLLHUP == POLLHUP);
}

/* Whether a message that nobody reads is told of twice. */
static int told_again(int epoll_fd, int fd, uint32_t events, uint64_t cookie, int *cookie_kept)
{
    struct epoll_event event = {.events = 0};
    add(epoll_fd, fd, events, cookie);
    if (look(epoll_fd, &event) != 1)
        die(EXIT_FAILURE, "epoll_wait: no event of a socket that can be read");
    *cookie_kept = event.data.u64 == cookie;
    return look(epoll_fd, &event);
}

struct epoll_facts epoll_facts(void)
{
    const uint64_t cookie = 0x0123456789abcdef;
    struct epoll_facts facts = {.constants_equal = constants_equal()};
    int pair[2], edge_kept;
    int epoll_fd = epoll_create1(0);
    if (epoll_fd == -1)
        die_errno("epoll_create1");
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == -1)
        die_errno("socketpair");
    if (send(pair[1], "", 1, 0) != 1)
        die_errno("send");
    facts.level_again = told_again(epoll_fd, pair[0], EPOLLIN, cookie, &facts.cookie_kept);
    facts.delete_null = epoll_ctl(epoll_fd, EPOLL_CTL_DEL, pair[0], NULL) == 0;
    facts.edge_again = told_again(epoll_fd, pair[0], EPOLLIN | EPOLLET, cookie, &edge_kept);
    facts.cookie_kept &= edge_kept;
    close(pair[0]);
    close(pair[1]);
    close(epoll_fd);
    return facts;
}

#else

struct epoll_facts epoll_facts(void)
{
    return (struct epoll_facts){NOT_HERE, NOT_HERE, NOT_HERE, NOT_HERE, NOT_HERE};
}

#endif
