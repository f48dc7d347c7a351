/*
 * fd-alloc: what does the next descriptor cost, when a process has many?
 *
 * Shows: a line has the time of one call that opens a descriptor, and the number it gave: `open`
 * are there already that were opened in the same way. The way is one of
 *   socket  socket()
 *   open    open() of SMALL_FILE
 *   dup     dup() of one socket, so that hardly more is done than to find a number
 *   dupfd   fcntl(F_DUPFD) of it, for "any high one": numbers from LEAST up to DESCRIPTORS
 * To find a number Linux looks through words of 64 bits, a bit for each number, and skips full
 * words by a second vector with a bit for each of them. F_DUPFD begins with LEAST each time. If the
 * word of LEAST never gets full, as there are free numbers below LEAST in it, it skips none.
 * With -l 10, number 10 is closed and opened again after each of them: refill_ns is the time of the
 * call that takes it. POSIX wants the lowest free number, and another one ends the run. (LOW is one
 * that is opened here, 4 or more: not stdout, nor what is copied.)
 * With -t 1 a thread sleeps beside. grow_ns is call_ns again where the number is a power of two,
 * from FIRST_TABLE on: there Linux makes a table twice as large and copies the old one, and if
 * threads share it, waits until none of them can still be looking at the old one.
 * With -k 11 only every 11th call gets a line, and each that has a grow_ns.
 * Source: open(2), "lowest-numbered file descriptor"; fcntl(2); alloc_fd(), find_next_fd() and
 * expand_fdtable() in fs/file.c of Linux 6.18.
 * Needs: room for the descriptors (ulimit -n), else the run ends with status 1.
 * Run:   fd-alloc -n 900 dup | tail
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

#define MAX_DESCRIPTORS 1000000
#define MAX_THREADS     64
#define FIRST_TABLE     256 /* a table begins with 64, but is inherited: that of a shell has 256 */
#define SMALL_FILE      "/etc/passwd"

struct sample {
    uint64_t call_ns;
    uint64_t refill_ns; /* 0: nothing was refilled */
    int fd;
};

static int original; /* what dup() and F_DUPFD make copies of */
static int least;    /* the lowest number that F_DUPFD may give */

static int make_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}

static int open_file(void)
{
    return open(SMALL_FILE, O_RDONLY);
}

static int duplicate(void)
{
    return dup(original);
}

static int duplicate_high(void)
{
    return fcntl(original, F_DUPFD, least);
}

static const struct way {
    const char *name;
    int (*take)(void);
} ways[] = {
    {"socket", make_socket},
    {"open", open_file},
    {"dup", duplicate},
    {"dupfd", duplicate_high},
};

static const struct way *way_named(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

/* Sleeps until the first thread lets go of the lock. */
static void *sleep_beside(void *lock)
{
    int error = pthread_mutex_lock(lock);
    if (error == 0)
        error = pthread_mutex_unlock(lock);
    if (error != 0)
        die(EXIT_FAILURE, "pthread_mutex_lock: %s", strerror(error));
    return NULL;
}

static void threads_start(pthread_t *thread, size_t count, pthread_mutex_t *lock)
{
    int error = pthread_mutex_lock(lock);
    for (size_t i = 0; i < count && error == 0; i++)
        error = pthread_create(&thread[i], NULL, sleep_beside, lock);
    if (error != 0)
        die(EXIT_FAILURE, "pthread_create: %s", strerror(error));
}

static void threads_end(const pthread_t *thread, size_t count, pthread_mutex_t *lock)
{
    int error = pthread_mutex_unlock(lock);
    for (size_t i = 0; i < count && error == 0; i++)
        error = pthread_join(thread[i], NULL);
    if (error != 0)
        die(EXIT_FAILURE, "pthread_join: %s", strerror(error));
}

static uint64_t refill(const struct way *way, int low)
{
    if (close(low) == -1)
        die_errno("close");
    uint64_t start = now_ns();
    int fd = way->take();
    uint64_t took = now_ns() - start;
    if (fd == -1)
        die_errno("%s", way->name);
    if (fd != low)
        die(EXIT_FAILURE, "%s: descriptor %d was free and %d was given", way->name, low, fd);
    return took;
}

/* Returns how many it opened: less than count, with errno set, if one was refused. */
static size_t take_all(const struct way *way, struct sample *sample, size_t count, int low)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t start = now_ns();
        sample[i].fd = way->take();
        sample[i].call_ns = now_ns() - start;
        if (sample[i].fd == -1)
            return i;
        if (low > 0 && sample[i].fd > low)
            sample[i].refill_ns = refill(way, low);
    }
    return count;
}

static bool table_grows_for(int fd)
{
    return fd >= FIRST_TABLE && (fd & (fd - 1)) == 0;
}

static void print_samples(const struct sample *sample, size_t count, size_t step)
{
    puts("open\tfd\tcall_ns\trefill_ns\tgrow_ns");
    for (size_t i = 0; i < count; i++) {
        bool grown = table_grows_for(sample[i].fd);
        if (i % step != 0 && !grown)
            continue;
        printf("%lu\t%d\t%llu", (unsigned long)i, sample[i].fd,
               (unsigned long long)sample[i].call_ns);
        if (sample[i].refill_ns != 0)
            printf("\t%llu", (unsigned long long)sample[i].refill_ns);
        else
            fputs("\t-", stdout);
        if (grown)
            printf("\t%llu\n", (unsigned long long)sample[i].call_ns);
        else
            puts("\t-");
    }
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "DESCRIPTORS", 1, MAX_DESCRIPTORS, 900, 0},
        {'k', "STEP", 1, MAX_DESCRIPTORS, 1, 0},
        {'l', "LOW", 0, MAX_DESCRIPTORS, 0, 0},
        {'m', "LEAST", 1, MAX_DESCRIPTORS, 128, 0},
        {'t', "THREADS", 0, MAX_THREADS, 0, 0},
    };
    const struct command_line line = {options, 5, "socket|open|dup|dupfd", 1, 1};
    char **words = read_command_line(argc, argv, &line);
    size_t count = options[0].value, threads = options[4].value;
    int low = (int)options[2].value;
    pthread_t thread[MAX_THREADS];
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    const struct way *way = way_named(words[0]);
    if (way == NULL)
        refuse(&line);
    if (way->take == duplicate_high) {
        if (low > 0 || count <= options[3].value)
            refuse(&line);
        least = (int)options[3].value;
        count -= options[3].value;
    }
    struct sample *sample = samples_new(count, sizeof *sample);
    original = make_socket();
    if (original == -1)
        die_errno("socket");
    if (low > 0 && low <= original)
        die(EXIT_USAGE, "LOW: descriptor %d is not one of those that are opened here", low);

    threads_start(thread, threads, &lock);
    size_t taken = take_all(way, sample, count, low);
    int take_errno = errno;
    threads_end(thread, threads, &lock);

    print_samples(sample, taken, options[1].value);
    free(sample);
    if (taken < count)
        die(EXIT_FAILURE, "%s: %s after %lu descriptors", way->name, strerror(take_errno),
            (unsigned long)taken);
    /* Not exit(): dietlibc 0.34 then looks for the threads that were joined, and crashes. */
    _exit(EXIT_SUCCESS);
}
