/*
 * fork-reap: how long does it take to end one process and to collect its status, while many are
 * alive?
 *
 * Shows: all children are made first; then, oldest first, kill(SIGTERM) and waitpid() of each are
 * one sample. The line says how many other children were still there: read from the last line
 * upwards, the cost grows with the number of processes or does not.
 * Needs: room for that many processes (ulimit -u).
 * Run:   fork-reap -n 1000 | tail
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "micro.h"

#define DEFAULT_CHILDREN 1000
#define MAX_CHILDREN     100000
#define PATIENCE         300 /* seconds for the whole run */

struct child {
    pid_t pid;
    uint64_t reap_ns;
};

static void make(struct children *children, struct child *child, size_t count)
{
    for (size_t made = 0; made < count; made++) {
        child[made].pid = fork();
        if (child[made].pid == 0)
            child_live(children);
        if (child[made].pid == -1) {
            int fork_errno = errno;
            children_end(children, made);
            die(EXIT_FAILURE, "fork: %s after %lu children", strerror(fork_errno),
                (unsigned long)made);
        }
        children_await_one(children);
    }
}

static void reap(struct child *child)
{
    int status;
    pid_t pid;
    uint64_t start = now_ns();
    if (kill(child->pid, SIGTERM) == -1)
        die_errno("kill");
    do {
        pid = waitpid(child->pid, &status, 0);
    } while (pid == -1 && errno == EINTR);
    child->reap_ns = now_ns() - start;
    if (pid == -1)
        die_errno("waitpid");
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM)
        die(EXIT_FAILURE, "a child ended by itself");
}

int main(int argc, char *argv[])
{
    size_t count = count_option(argc, argv, "CHILDREN", DEFAULT_CHILDREN, MAX_CHILDREN);
    struct child *child = samples_new(count, sizeof *child);
    struct children children;
    children_open(&children, PATIENCE);

    make(&children, child, count);
    for (size_t i = 0; i < count; i++)
        reap(&child[i]);

    puts("remaining\treap_ns");
    for (size_t i = 0; i < count; i++)
        printf("%lu\t%llu\n", (unsigned long)(count - 1 - i), (unsigned long long)child[i].reap_ns);
    samples_finish();
    free(child);
    return EXIT_SUCCESS;
}
