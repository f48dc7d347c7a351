/*
 * The herd: keep-alive connections that have asked once and then ask for nothing more; and, without
 * a load, the crowd (crowd.h).
 *
 * They may be more than one process may have descriptors, so processes of hammer's own hold a share
 * each: opened before the load begins, silent while it runs, counted and closed at its end. A
 * process of the herd ends with hammer, in whatever way that ends: its end of the socket pair
 * between the two is then at its end of file.
 *
 * From 127.0.0.1 alone there are about 28 000 ports, and they are hard to find long before the
 * last: each process has a source address of its own, from 127.1.0.1 on, unless --source gives
 * others or the target is not an IPv4 loopback address.
 */
#ifndef HAMMER_HERD_H
#define HAMMER_HERD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "clock.h"
#include "crowd.h"
#include "herder.h"
#include "options.h"
#include "url.h"

struct herd_process {
    enum watch_role role; /* first: see clock.h */
    int fd;               /* our end of the socket pair; -1: none */
    pid_t pid;
    struct herd_news news;
};

struct herd {
    struct crowd_report report; /* of the herd; nobody comes again, so no reconnects */
    struct crowd_report crowd[CROWD_KINDS];
    struct herd_process *processes; /* owned; first those of the herd */
    size_t count;
    size_t unsettled;    /* processes that are still opening connections */
    uint64_t settled_ns; /* how long they took, or until the signal that came first */
    bool failed;         /* one of the herd has failed: it will not be complete */
    size_t died;         /* processes that ended before their time */
    char problem[160];
};

/*
 * Starts to open options->herd connections, to `herd_urls` in turn, and without a load the crowd,
 * to `urls` by chance. All three must outlive the herd. 0, or -1 with errno.
 */
int herd_start(struct herd *herd, const struct options *options, struct url_list *urls,
               const struct url_list *herd_urls);

/* How many processes it takes; to each goes a descriptor of hammer's. */
uint64_t herd_processes(const struct options *options);

/* Lets epoll report what the processes tell. 0, or -1 with errno. */
int herd_watch(struct herd *herd, int epoll_fd);

void herd_on_event(struct herd *herd, struct herd_process *process);

/* Is every connection there, or is it decided that they will not be? */
bool herd_is_settled(const struct herd *herd);

/* How many connections there were then, of herd and crowd. */
uint64_t herd_established(const struct herd *herd);

/*
 * Counts the connections that are still there, closes them, and waits for the end of the
 * processes. What was wrong with the herd is one line in `problem`, or "".
 */
void herd_finish(struct herd *herd);

void herd_free(struct herd *herd);

#endif
