/*
 * wake-latency: how long does a sleeping process wait until it runs, while others want the
 * processor too?
 *
 * Shows: a process sleeps in read() on a pipe. A sample is the time from just before the write that
 * wakes it until it has read the clock. Between two samples both sleep 1 to 2 ms, and the others
 * (-b), which are no nicer than we are, run. Most samples say how soon the scheduler takes a
 * process that has run little, the longest ones how long it can be passed over.
 * Needs: one processor for all, or the others are not beside.
 * Run:   taskset -c 0 wake-latency -b 16 | sort -n
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "micro.h"

#define MAX_SAMPLES 100000
#define MAX_BUSY    10000
#define PAUSE_NS    1000000U
#define PATIENCE    300 /* seconds for the whole run */

struct sleeper {
    int wake;   /* we write the time here ... */
    int answer; /* ... and read here what it was late by */
    pid_t pid;
};

static void close_fd(int fd)
{
    if (close(fd) == -1)
        die_errno("close");
}

/* A time through a pipe: 8 bytes arrive together or not at all. False at the end of file. */
static bool receive(int fd, uint64_t *ns)
{
    ssize_t n;
    do {
        n = read(fd, ns, sizeof *ns);
    } while (n == -1 && errno == EINTR);
    if (n == -1)
        die_errno("read");
    return n == (ssize_t)sizeof *ns;
}

static void send_on(int fd, uint64_t ns)
{
    ssize_t n;
    do {
        n = write(fd, &ns, sizeof ns);
    } while (n == -1 && errno == EINTR);
    if (n != (ssize_t)sizeof ns)
        die_errno("write");
}

static _Noreturn void sleep_and_answer(int wake, int answer)
{
    uint64_t sent;
    while (receive(wake, &sent)) /* false when the one who wakes us is gone */
        send_on(answer, now_ns() - sent);
    _exit(EXIT_SUCCESS);
}

static void sleeper_make(struct sleeper *sleeper)
{
    int wake[2], answer[2];
    if (pipe(wake) == -1 || pipe(answer) == -1)
        die_errno("pipe");
    sleeper->pid = fork();
    if (sleeper->pid == -1)
        die(EXIT_FAILURE, "fork: %s", strerror(errno));
    if (sleeper->pid == 0) {
        close_fd(wake[1]);
        close_fd(answer[0]);
        sleep_and_answer(wake[0], answer[1]);
    }
    close_fd(wake[0]);
    close_fd(answer[1]);
    sleeper->wake = wake[1];
    sleeper->answer = answer[0];
}

static void sleeper_end(const struct sleeper *sleeper)
{
    int status;
    close_fd(sleeper->wake);
    while (waitpid(sleeper->pid, &status, 0) == -1)
        if (errno != EINTR)
            die_errno("waitpid");
    if (status != 0)
        die(EXIT_FAILURE, "the sleeper failed");
    close_fd(sleeper->answer);
}

/* 1 to 2 ms, another length each time: not in step with the clock of the kernel. */
static void rest(size_t i)
{
    struct timespec pause = {.tv_nsec = (long)(PAUSE_NS + i * 382966U % PAUSE_NS)};
    while (nanosleep(&pause, &pause) == -1)
        if (errno != EINTR)
            die_errno("nanosleep");
}

static void measure(const struct sleeper *sleeper, uint64_t *wake_ns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rest(i);
        send_on(sleeper->wake, now_ns());
        if (!receive(sleeper->answer, &wake_ns[i]))
            die(EXIT_FAILURE, "the sleeper ended");
    }
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 100, 0},
        {'b', "BUSY", 0, MAX_BUSY, 0, 0},
    };
    read_command_line(argc, argv, &(struct command_line){options, 2, "", 0, 0});
    size_t count = options[0].value;
    uint64_t *wake_ns = samples_new(count, sizeof *wake_ns);
    struct children none; /* for its patience alone */
    struct sleeper sleeper;
    struct spinners spinners;
    children_open(&none, PATIENCE);
    sleeper_make(&sleeper);
    bool made = spinners_start(&spinners, options[1].value, 0);
    int fork_errno = errno;

    if (made)
        measure(&sleeper, wake_ns, count);
    spinners_end(&spinners);
    sleeper_end(&sleeper);
    children_end(&none, 0);
    if (!made)
        die(EXIT_FAILURE, "fork: %s", strerror(fork_errno));
    puts("wake_ns");
    for (size_t i = 0; i < count; i++)
        printf("%llu\n", (unsigned long long)wake_ns[i]);
    samples_finish();
    free(wake_ns);
    return EXIT_SUCCESS;
}
