/*
 * thread-create: how long does it take until a new thread runs, while ever more are alive?
 *
 * Shows: one sample a thread, from just before pthread_create() until the first thread has read a
 * byte the new one wrote: the same as fork-latency with processes, so the two can be compared. All
 * threads stay alive, asleep, until the end, so the sample in line `live` was taken with that many
 * others there. -s 0 takes the stack size of the library, which with glibc is the one of ulimit -s.
 * Needs: room for that many threads (ulimit -u counts them as processes) and for the address space
 * of their stacks; a pthread_create() that fails ends the run with status 1.
 * Run:   thread-create -n 1000 -s 64 | head
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "micro.h"

#define MAX_THREADS   100000
#define MAX_STACK_KIB (1024 * 1024)
#define PATIENCE      300 /* seconds for the whole run */

struct thread {
    pthread_t id;
    uint64_t create_ns;
};

/* What child_live() is for a process. Returns NULL, or something else if a call failed. */
static void *thread_live(void *argument)
{
    const struct children *children = argument;
    char byte = 0;
    ssize_t n;
    do {
        n = write(children->report[1], &byte, 1);
    } while (n == -1 && errno == EINTR);
    if (n != 1)
        return argument;
    /* Nobody writes: it returns when the first thread closes the other end. */
    do {
        n = read(children->life[0], &byte, 1);
    } while (n == -1 && errno == EINTR);
    return n == 0 ? NULL : argument;
}

/* Returns how many threads it made: less than count, with errno set, if pthread_create failed. */
static size_t measure(struct children *children, const pthread_attr_t *attributes,
                      struct thread *thread, size_t count)
{
    for (size_t live = 0; live < count; live++) {
        uint64_t start = now_ns();
        errno = pthread_create(&thread[live].id, attributes, thread_live, children);
        if (errno != 0)
            return live;
        children_await_one(children);
        thread[live].create_ns = now_ns() - start;
    }
    return count;
}

static void end(struct children *children, const struct thread *thread, size_t count)
{
    if (close(children->life[1]) == -1)
        die_errno("close");
    for (size_t i = 0; i < count; i++) {
        void *failure;
        errno = pthread_join(thread[i].id, &failure);
        if (errno != 0)
            die_errno("pthread_join");
        if (failure != NULL)
            die(EXIT_FAILURE, "a thread failed");
    }
}

static void set_stack(pthread_attr_t *attributes, size_t kib)
{
    errno = pthread_attr_init(attributes);
    if (errno != 0)
        die_errno("pthread_attr_init");
    if (kib == 0)
        return;
    errno = pthread_attr_setstacksize(attributes, kib * 1024);
    if (errno != 0)
        die_errno("a stack of %lu KiB", (unsigned long)kib);
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "THREADS", 1, MAX_THREADS, 1000, 0},
        {'s', "STACK_KIB", 0, MAX_STACK_KIB, 0, 0},
    };
    read_command_line(argc, argv, &(struct command_line){options, 2, "", 0, 0});
    size_t count = options[0].value;
    pthread_attr_t attributes;
    set_stack(&attributes, options[1].value);
    struct thread *thread = samples_new(count, sizeof *thread);
    struct children children;
    children_open(&children, PATIENCE);

    size_t made = measure(&children, &attributes, thread, count);
    int create_errno = errno;
    end(&children, thread, made);
    puts("live\tcreate_ns");
    for (size_t live = 0; live < made; live++)
        printf("%lu\t%llu\n", (unsigned long)live, (unsigned long long)thread[live].create_ns);
    samples_finish();
    free(thread);
    errno = create_errno;
    if (made < count)
        warn_errno("pthread_create after %lu threads", (unsigned long)made);
    /* Not exit(): dietlibc 0.34 then looks for the threads that were joined, and crashes. */
    _exit(made < count ? EXIT_FAILURE : EXIT_SUCCESS);
}
