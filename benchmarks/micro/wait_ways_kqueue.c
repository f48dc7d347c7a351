/*
 * kqueue, the system's own or the one of 10-kqueue, over epoll: its call is counted as one. With
 * dietlibc that of 10-kqueue cannot be built.
 */
#include "wait_ways.h"

#ifndef __dietlibc__

#include <errno.h>
#include <sys/types.h>
#include <sys/event.h>
#include <sys/time.h>

#include "die.h"
#include "micro.h"

#define BATCH 1024 /* events that one call can give */

static struct {
    int fd;
    struct kevent *batch;
} queue;

static void kqueue_open(const int *fds, size_t count)
{
    queue.fd = kqueue();
    if (queue.fd == -1)
        die_errno("kqueue");
    for (size_t i = 0; i < count; i++) {
        struct kevent change;
        EV_SET(&change, (uintptr_t)fds[i], EVFILT_READ, EV_ADD, 0, 0, NULL);
        if (kevent(queue.fd, &change, 1, NULL, 0, NULL) == -1)
            die_errno("kevent");
    }
    queue.batch = samples_new(BATCH, sizeof *queue.batch);
}

static size_t kqueue_wait(int *ready, size_t most, size_t *calls)
{
    const struct timespec patience = {.tv_sec = WAIT_PATIENCE};
    int room = most < BATCH ? (int)most : BATCH;
    int n;
    do {
        n = kevent(queue.fd, NULL, 0, queue.batch, room, &patience);
        ++*calls;
    } while (n == -1 && errno == EINTR);
    if (n == -1)
        die_errno("kevent");
    for (int i = 0; i < n; i++)
        ready[i] = (int)queue.batch[i].ident;
    return (size_t)n;
}

const struct wait_way kqueue_wait_ways[] = {{"kqueue", kqueue_open, kqueue_wait},
                                            {NULL, NULL, NULL}};

#else

const struct wait_way kqueue_wait_ways[] = {{NULL, NULL, NULL}};

#endif
