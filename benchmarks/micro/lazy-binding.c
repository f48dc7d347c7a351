/*
 * lazy-binding: what does it cost each child that its program looks up library functions when they
 * are first called?
 *
 * Shows: fork_ns, as fork-latency does, and dirty_kib, what that child has that nobody shares
 * (Private_Dirty in proc(5)), read when all are there. Parent and child call different functions.
 * With lazy binding the first call of each writes an address into a table, and the page with the
 * table is copied, in every child anew. With LD_BIND_NOW set the parent has filled in the whole
 * table before the first fork; linked statically, there is hardly a table.
 * Needs: room for that many processes (ulimit -u); Linux 4.14 for smaps_rollup (else status 77).
 * Run:   lazy-binding -n 100; LD_BIND_NOW=1 lazy-binding -n 100
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
#include "watched.h"

#define DEFAULT_CHILDREN 200
#define MAX_CHILDREN     100000
#define PATIENCE         300 /* seconds for the whole run */

struct child {
    pid_t pid;
    uint64_t fork_ns;
    size_t dirty_kib;
};

/* Returns how many children it made: less than count, with errno set, if fork failed. */
static size_t make(const struct children *children, struct child *child, size_t count)
{
    for (size_t live = 0; live < count; live++) {
        uint64_t start = now_ns();
        child[live].pid = fork();
        if (child[live].pid == 0)
            child_live(children);
        if (child[live].pid == -1)
            return live;
        children_await_one(children);
        child[live].fork_ns = now_ns() - start;
    }
    return count;
}

int main(int argc, char *argv[])
{
    size_t count = count_option(argc, argv, "CHILDREN", DEFAULT_CHILDREN, MAX_CHILDREN);
    struct child *child = samples_new(count, sizeof *child);
    struct children children;
    children_open(&children, PATIENCE);

    size_t made = make(&children, child, count);
    int fork_errno = errno;
    for (size_t i = 0; i < made; i++)
        child[i].dirty_kib = smaps_kib(child[i].pid, "Private_Dirty");
    children_end(&children, made);
    puts("live\tfork_ns\tdirty_kib");
    for (size_t live = 0; live < made; live++)
        printf("%lu\t%llu\t%lu\n", (unsigned long)live, (unsigned long long)child[live].fork_ns,
               (unsigned long)child[live].dirty_kib);
    samples_finish();
    free(child);
    if (made < count)
        die(EXIT_FAILURE, "fork: %s after %lu children", strerror(fork_errno), (unsigned long)made);
    return EXIT_SUCCESS;
}
