/*
 * run-queue: what does it cost to choose the next process, when many want to run?
 *
 * Beside us there are OTHERS, and all want the processor all the time. sched_yield() has the
 * next one chosen, of all of us. turn_ns is the time of
 *   again  a sched_yield() after which we ourselves have been chosen again, as the others are as
 *          nice as can be and we are not: the choice, and no change of process
 *   next   a sched_yield() of any of all, which do nothing else: the choice and the change, to a
 *          process that has waited until all the others had their turn. The mean of a round
 * Needs: one processor for all; for "again" the right to be preferred to others (root, mostly);
 * room for that many processes (ulimit -u).
 * Run:   taskset -c 0 run-queue -p 1000 next
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "micro.h"

#define MAX_SAMPLES 100000
#define MAX_OTHERS  100000
#define NICEST      19
#define FIRST       (-20)
#define WARM        3
#define PATIENCE    300 /* seconds for the whole run */

/* What we and the others see of each other. */
struct shared {
    atomic_ulong turns; /* that the others have had */
    atomic_bool over;
};

static struct shared *shared_new(void)
{
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die_errno("mmap");
    return shared;
}

/* Sleeps until all are there. A new parent means that ours is dead. */
static _Noreturn void live(const struct children *others, struct shared *shared, bool yields,
                           pid_t parent)
{
    if (!child_sleep(others) || (!yields && setpriority(PRIO_PROCESS, 0, NICEST) == -1))
        _exit(EXIT_FAILURE);
    do {
        atomic_fetch_add(&shared->turns, 1);
        for (int i = 0; i < 1000 && yields && !atomic_load(&shared->over); i++) {
            sched_yield();
            atomic_fetch_add(&shared->turns, 1);
        }
    } while (!atomic_load(&shared->over) && getppid() == parent);
    _exit(EXIT_SUCCESS);
}

/* Returns how many it made: less than count, with errno set, if fork failed. */
static size_t others_make(const struct children *others, size_t count, struct shared *shared,
                          bool yields)
{
    pid_t parent = getpid();
    for (size_t made = 0; made < count; made++) {
        pid_t pid = fork();
        if (pid == 0)
            live(others, shared, yields, parent);
        if (pid == -1)
            return made;
        children_await_one(others);
    }
    return count;
}

/* Of this process, of both kinds. */
static uint64_t changes(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == -1)
        die_errno("getrusage");
    return (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}

/* Once nobody else has run for some turns: after a change the caches are another's. */
static double again_ns(void)
{
    for (int calm = 0;;) {
        uint64_t before = changes(), start = now_ns();
        sched_yield();
        uint64_t end = now_ns();
        if (changes() != before)
            calm = 0;
        else if (calm++ == WARM)
            return (double)(end - start);
    }
}

static double next_ns(struct shared *shared, size_t others)
{
    unsigned long first = atomic_load(&shared->turns), ours = 0, theirs = 0;
    uint64_t start = now_ns();
    do {
        sched_yield();
        ours++;
        theirs = atomic_load(&shared->turns) - first;
    } while (theirs < others);
    return (double)(now_ns() - start) / (double)(ours + theirs);
}

static void measure(double *turn_ns, size_t count, struct shared *shared, size_t others,
                    bool yields)
{
    next_ns(shared, others); /* the first turns of all */
    for (size_t i = 0; i < count; i++)
        turn_ns[i] = yields ? next_ns(shared, others) : again_ns();
}

static void others_end(size_t count, struct shared *shared)
{
    atomic_store(&shared->over, true);
    while (count > 0) {
        int status;
        pid_t pid = waitpid(-1, &status, 0);
        if (pid == -1 && errno != EINTR)
            die_errno("waitpid");
        if (pid != -1 && status != 0)
            die(EXIT_FAILURE, "one of the others failed");
        count -= pid != -1;
    }
}

static void print_samples(const double *turn_ns, size_t count)
{
    puts("turn_ns");
    for (size_t i = 0; i < count; i++)
        printf("%.1f\n", turn_ns[i]);
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 50, 0},
        {'p', "OTHERS", 1, MAX_OTHERS, 16, 0},
    };
    const struct command_line line = {options, 2, "again|next", 1, 1};
    char **words = read_command_line(argc, argv, &line);
    bool yields = strcmp(words[0], "next") == 0;
    if (!yields && strcmp(words[0], "again") != 0)
        refuse(&line);
    if (!yields && setpriority(PRIO_PROCESS, 0, FIRST) == -1)
        die(EXIT_UNSUPPORTED, "we may not go before others: %s", strerror(errno));
    size_t count = options[0].value, wanted = options[1].value;
    double *turn_ns = samples_new(count, sizeof *turn_ns);
    struct shared *shared = shared_new();
    struct children others;
    children_open(&others, PATIENCE);

    size_t made = others_make(&others, wanted, shared, yields);
    int fork_errno = errno;
    if (close(others.life[1]) == -1) /* the sign to begin */
        die_errno("close");
    if (made == wanted)
        measure(turn_ns, count, shared, wanted, yields);
    others_end(made, shared);
    if (made < wanted)
        die(EXIT_FAILURE, "fork: %s", strerror(fork_errno));
    print_samples(turn_ns, count);
    free(turn_ns);
    return EXIT_SUCCESS;
}
