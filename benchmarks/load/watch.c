/* Registration with epoll; see watch.h. */
#include "watch.h"

#include <sys/epoll.h>

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
