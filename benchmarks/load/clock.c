/* Queues of deadlines, and epoll; see clock.h. */
#include "clock.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/epoll.h>

void deadline_queue_init(struct deadline_queue *queue, uint64_t delay_ns)
{
    queue->ring.previous = queue->ring.next = &queue->ring;
    queue->delay = delay_ns;
}

void deadline_clear(struct deadline *d)
{
    if (!d->next)
        return;
    d->previous->next = d->next;
    d->next->previous = d->previous;
    d->next = d->previous = NULL;
}

void deadline_set(struct deadline_queue *queue, struct deadline *d, uint64_t now)
{
    deadline_clear(d);
    d->at = now + queue->delay;
    d->next = &queue->ring;
    d->previous = queue->ring.previous;
    d->previous->next = d;
    queue->ring.previous = d;
}

struct deadline *deadline_expired(struct deadline_queue *queue, uint64_t now)
{
    struct deadline *first = queue->ring.next;
    if (first == &queue->ring || first->at > now)
        return NULL;
    deadline_clear(first);
    return first;
}

uint64_t deadline_next(const struct deadline_queue *queue)
{
    return queue->ring.next == &queue->ring ? CLOCK_NEVER : queue->ring.next->at;
}

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
