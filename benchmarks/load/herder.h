/*
 * The processes of the herd (herd.h): one kind opens its share of the silent connections, the other
 * holds its share of the crowd when no load is wanted.
 */
#ifndef HAMMER_HERDER_H
#define HAMMER_HERDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crowd.h"
#include "options.h"
#include "url.h"

/*
 * What a process tells: when its connections are there or will not be, and last. Those of the herd
 * fill in `report`, those of the crowd `crowd`.
 */
struct herd_news {
    struct crowd_report report;
    struct crowd_report crowd[CROWD_KINDS];
    int error; /* errno of the connection of the herd that has failed, or 0 */
    bool last;
};

/* A process of the herd (herd.h): opens its share of the connections and holds them. */

struct herder_task {
    const struct options *options;
    const struct url_list *urls;
    uint64_t first; /* its connections are first .. first + count - 1 of the herd */
    uint64_t count;
    size_t window;     /* so many may be on their way at once */
    uint32_t own_host; /* IPv4 loopback targets: connects from here; in host byte order */
    int control;       /* to hammer: news goes there, and end of file asks for the end */
};

/* Does the task and ends the process. */
_Noreturn void herder_run(const struct herder_task *task);

/*
 * A process that holds a share of the crowd when no load is wanted (herd.h): as crowd.h has it, but
 * with descriptors and a source address of its own.
 */

struct holder_task {
    struct options options; /* those of hammer, but with the share of this process */
    struct url_list *urls;
    uint32_t own_host; /* IPv4 loopback targets: connects from here; in host byte order */
    int control;       /* to hammer: news goes there, and end of file asks for the end */
};

/* Does the task and ends the process. */
_Noreturn void holder_run(struct holder_task *task);

#endif
