/*
 * fork-latency: how long does it take until a new process runs, while ever more processes are
 * alive?
 *
 * Shows: one sample a child, from just before fork() until the parent has read a byte the child
 * wrote: fork, being scheduled, and the first page faults of both are in it. All children stay
 * alive, asleep, until the end, so the sample in line `live` was taken with that many children
 * there.
 * Needs: room for that many processes (ulimit -u); a fork that fails ends the run with status 1.
 * Run:   fork-latency -n 1000 | head
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "micro.h"

#define DEFAULT_CHILDREN 1000
#define MAX_CHILDREN     100000
#define PATIENCE         300 /* seconds for the whole run */

/* Returns how many children it made: less than count, with errno set, if fork failed. */
static size_t measure(const struct children *children, uint64_t *fork_ns, size_t count)
{
    /* region: sample */
    for (size_t live = 0; live < count; live++) {
        uint64_t start = now_ns();
        pid_t pid = fork();
        if (pid == 0)
            child_live(children);
        if (pid == -1)
            return live;
        children_await_one(children);
        fork_ns[live] = now_ns() - start;
    }
    /* endregion: sample */
    return count;
}

static void print_samples(const uint64_t *fork_ns, size_t count)
{
    puts("live\tfork_ns");
    for (size_t live = 0; live < count; live++)
        printf("%lu\t%llu\n", (unsigned long)live, (unsigned long long)fork_ns[live]);
    samples_finish();
}

int main(int argc, char *argv[])
{
    size_t count = count_option(argc, argv, "CHILDREN", DEFAULT_CHILDREN, MAX_CHILDREN);
    uint64_t *fork_ns = samples_new(count, sizeof *fork_ns);
    struct children children;
    children_open(&children, PATIENCE);

    size_t made = measure(&children, fork_ns, count);
    int fork_errno = errno;
    children_end(&children, made);
    /* Only now: a child inherits the lines that still wait in the buffer. */
    print_samples(fork_ns, made);
    free(fork_ns);
    if (made < count)
        die(EXIT_FAILURE, "fork: %s after %lu children", strerror(fork_errno), (unsigned long)made);
    return EXIT_SUCCESS;
}
