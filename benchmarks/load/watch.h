/* What epoll hands back, and how a descriptor gets into its set. */
#ifndef HAMMER_WATCH_H
#define HAMMER_WATCH_H

#include <stdint.h>

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
 * As epoll_wait, until the clock (clock.h) says `until`; CLOCK_NEVER: for ever. Before Linux 5.11
 * in whole ms.
 */
int watch_wait(int epoll_fd, struct epoll_event *events, int count, uint64_t now, uint64_t until);

#endif
