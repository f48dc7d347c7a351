/*
 * watched.h: a child that does one thing and then sleeps, so that its memory can be looked at.
 */
#ifndef WATCHED_H
#define WATCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "children.h"

/* What a piece of work cost the process that did it. */
struct cost {
    uint64_t ns;
    uint64_t faults;   /* minor page faults: those that needed no disk */
    bool ask_waited;   /* set before: waited_ns is wanted, too */
    int64_t waited_ns; /* of ns, waiting for the processor (micro.h); -1: not known */
};

/*
 * Does work(argument) and fills in its cost. Who asks for waited_ns has called waited_ns() before:
 * what that function touches for the first time would be taken for the cost of a child.
 */
void watch(void (*work)(void *), void *argument, struct cost *cost);

/*
 * Shared with the children that are made later, and resident: what they write there is no copy of
 * theirs. Dies if there is no memory; never freed.
 */
void *shared_new(size_t bytes);

/*
 * Makes a child that watches itself doing work(argument), if work is not NULL, and returns when it
 * has done so and sleeps. cost must be in memory from shared_new().
 */
pid_t watched_start(const struct children *children, void (*work)(void *), void *argument,
                    struct cost *cost);

/* Ends the child and waits for it; dies if it had ended by itself. */
void watched_end(pid_t pid);

/* What the memory of a process consists of, from /proc/PID/smaps_rollup (proc(5)). */

/*
 * The value of a line of that file, as "Private_Dirty", in KiB; pid 0 is this process. Allocates
 * nothing, so that it does not change what it asks for. Dies if the process is gone; with 77 where
 * there is no such file (before Linux 4.14, and on other systems).
 */
size_t smaps_kib(pid_t pid, const char *field);

#endif
