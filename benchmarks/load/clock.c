/* Queues of deadlines; see clock.h. */
#include "clock.h"

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
