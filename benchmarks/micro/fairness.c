/*
 * fairness: do processes that all want the same processor get the same of it?
 *
 * Shows: so many processes, equally nice, are let go at one moment and compute until another, so
 * much later that -t milliseconds are an equal part for each. A line has the processor time one has
 * got in between, in nanoseconds, how often it had to stop for another (involuntary), and share,
 * its time as a multiple of an equal part of all they got.
 * Needs: one processor for all, else each has one of its own.
 * Run:   taskset -c 0 fairness -n 8 -t 50
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "micro.h"

#define MAX_SPINNERS 10000
#define MAX_MS       1000
#define NS_PER_MS    1000000U
#define READINGS     10000 /* of the clock, between two looks for the parent: some 0.3 ms */
#define PATIENCE     300   /* seconds for the whole run */

/* In memory the processes share. */
struct spinner {
    uint64_t cpu_ns;
    uint64_t involuntary;
};

struct race {
    volatile uint64_t end; /* on the clock of now_ns(); set before the children are let go */
    struct spinner spinner[];
};

static uint64_t cpu_ns(void)
{
    struct timespec used;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == -1)
        die_errno("clock_gettime");
    return (uint64_t)used.tv_sec * 1000000000U + (uint64_t)used.tv_nsec;
}

static uint64_t involuntary(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == -1)
        die_errno("getrusage");
    return (uint64_t)usage.ru_nivcsw;
}

/* The clock is read without pause: that is the computing. A new parent means that ours is dead. */
static _Noreturn void compete(const struct children *children, struct race *race, size_t i,
                              pid_t parent)
{
    if (!child_sleep(children))
        _exit(EXIT_FAILURE);
    uint64_t cpu_before = cpu_ns(), stops_before = involuntary();
    while (now_ns() < race->end && getppid() == parent)
        for (int reading = 0; reading < READINGS && now_ns() < race->end; reading++)
            ;
    race->spinner[i].cpu_ns = cpu_ns() - cpu_before;
    race->spinner[i].involuntary = involuntary() - stops_before;
    _exit(EXIT_SUCCESS);
}

static struct race *race_new(size_t count)
{
    size_t size = sizeof(struct race) + count * sizeof(struct spinner);
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die_errno("mmap");
    memset(shared, 0, size); /* nobody's time goes into a page fault */
    return shared;
}

static void print_samples(const struct race *race, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)race->spinner[i].cpu_ns;
    puts("spinner\tcpu_ns\tinvoluntary\tshare");
    for (size_t i = 0; i < count; i++)
        printf("%lu\t%llu\t%llu\t%.4f\n", (unsigned long)i,
               (unsigned long long)race->spinner[i].cpu_ns,
               (unsigned long long)race->spinner[i].involuntary,
               (double)race->spinner[i].cpu_ns * (double)count / sum);
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SPINNERS", 1, MAX_SPINNERS, 8, 0},
        {'t', "MILLISECONDS_EACH", 1, MAX_MS, 50, 0},
    };
    read_command_line(argc, argv, &(struct command_line){options, 2, "", 0, 0});
    size_t count = options[0].value, made;
    struct race *race = race_new(count);
    struct children children;
    int fork_errno = 0;
    pid_t parent = getpid();
    children_open(&children, PATIENCE);
    for (made = 0; made < count; made++) {
        pid_t pid = fork();
        if (pid == 0)
            compete(&children, race, made, parent);
        if (pid == -1) {
            fork_errno = errno;
            break;
        }
        children_await_one(&children);
    }

    if (made == count) /* else `end` is in the past, and all end at once */
        race->end = now_ns() + count * options[1].value * NS_PER_MS;
    children_end(&children, made);
    if (made < count)
        die(EXIT_FAILURE, "fork: %s", strerror(fork_errno));
    print_samples(race, count);
    return EXIT_SUCCESS;
}
