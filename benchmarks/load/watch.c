/* Registration with epoll; see watch.h. */
#include "watch.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <time.h>

#include "clock.h"

int watch(int epoll_fd, int fd, void *owner, uint32_t *current, uint32_t wanted)
{
    if (*current == wanted)
        return 0;
    struct epoll_event event = {.events = wanted, .data.ptr = owner};
    if (epoll_ctl(epoll_fd, *current ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) < 0)
        return -1;
    *current = wanted;
    return 0;
}

int watch_wait(int epoll_fd, struct epoll_event *events, int count, uint64_t now, uint64_t until)
{
    uint64_t ns = until > now ? until - now : 0;
    struct timespec timeout = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    bool forever = until == CLOCK_NEVER;

    int n = epoll_pwait2(epoll_fd, events, count, forever ? NULL : &timeout, NULL);
    if (n >= 0 || errno != ENOSYS)
        return n;
    uint64_t ms = (ns + NS_PER_MS - 1) / NS_PER_MS;
    return epoll_wait(epoll_fd, events, count, forever ? -1 : (int)(ms < 60000 ? ms : 60000));
}
