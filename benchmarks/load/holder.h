/*
 * A process that holds a share of the crowd when no load is wanted (herd.h): as crowd.h has it, but
 * with descriptors and a source address of its own.
 */
#ifndef HAMMER_HOLDER_H
#define HAMMER_HOLDER_H

#include <stdint.h>

#include "options.h"
#include "url.h"

struct holder_task {
    struct options options; /* those of hammer, but with the share of this process */
    struct url_list *urls;
    uint32_t own_host; /* IPv4 loopback targets: connects from here; in host byte order */
    int control;       /* to hammer: news goes there, and end of file asks for the end */
};

/* Does the task and ends the process. */
_Noreturn void holder_run(struct holder_task *task);

#endif
