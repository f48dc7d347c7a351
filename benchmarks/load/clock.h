/* The clock, queues of what is due at some time, and the wait for that or for a descriptor. */
#ifndef HAMMER_CLOCK_H
#define HAMMER_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* The one clock of hammer: monotonic nanoseconds. */

#define NS_PER_MS   1000000ull
#define NS_PER_S    1000000000ull
#define CLOCK_NEVER UINT64_MAX

/* CLOCK_MONOTONIC cannot fail on Linux with a valid pointer, so there is nothing to check. */
static inline uint64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/*
 * Deadlines that are all equally far away.
 *
 * Every user of a queue waits for the same time (a time-out, a drip interval), so the order of
 * setting is the order of expiry: a doubly linked list is enough, and setting, clearing and
 * expiring are O(1), with no heap and no wheel.
 */

/* Lives inside its owner; all zero means "not set". */
struct deadline {
    struct deadline *previous;
    struct deadline *next;
    uint64_t at;
};

struct deadline_queue {
    struct deadline ring; /* sentinel: ring.next expires first */
    uint64_t delay;
};

static inline void *deadline_enclosing(struct deadline *d, size_t offset)
{
    return (char *)d - offset;
}

/* The struct whose member `deadline` this is. */
#define DEADLINE_OWNER(d, type) ((type *)deadline_enclosing((d), offsetof(type, deadline)))

void deadline_queue_init(struct deadline_queue *queue, uint64_t delay_ns);

/*
 * Expires at now + delay; a deadline already set is moved. A `now` that is a little older than
 * the one before only makes this deadline wait for its predecessor.
 */
void deadline_set(struct deadline_queue *queue, struct deadline *d, uint64_t now);

/* No effect on a deadline that is not set. */
void deadline_clear(struct deadline *d);

/* Takes the first deadline that has expired off the queue, or returns NULL. */
struct deadline *deadline_expired(struct deadline_queue *queue, uint64_t now);

/* When the first one expires, or CLOCK_NEVER. */
uint64_t deadline_next(const struct deadline_queue *queue);

/* What epoll hands back, and how a descriptor gets into its set. */
struct epoll_event;

/* First member of everything that is watched: epoll's cookie points to it. */
enum watch_role { WATCH_SIGNAL, WATCH_CLIENT, WATCH_CROWD, WATCH_HERD };

/*
 * Makes epoll report `wanted` for `fd` with `owner` as the cookie. *current is what it reports
 * now, 0 if `fd` is not in the set; no system call if nothing changes. 0, or -1 with errno.
 * close() takes a descriptor out of the set by itself.
 */
int watch(int epoll_fd, int fd, void *owner, uint32_t *current, uint32_t wanted);

/*
 * As epoll_wait, until the clock says `until`; CLOCK_NEVER: for ever. Before Linux 5.11
 * in whole ms.
 */
int watch_wait(int epoll_fd, struct epoll_event *events, int count, uint64_t now, uint64_t until);

#endif
