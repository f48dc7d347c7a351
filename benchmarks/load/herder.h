/* A process of the herd (herd.h): opens its share of the connections and holds them. */
#ifndef HAMMER_HERDER_H
#define HAMMER_HERDER_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "url.h"

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

#endif
