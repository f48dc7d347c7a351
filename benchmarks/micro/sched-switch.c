/*
 * sched-switch: what does it cost to hand the processor from one process to the next, while others
 * are there?
 *
 * Shows: a byte goes round a ring of processes, each of which sleeps in read() until the byte
 * comes, so that one hand-over is a write, a change of process and a read. A sample is the mean of
 * one lap, or of as many laps as make 100 hand-overs. pipe_ns is the same write and read in one
 * process: what is left of handover_ns without it is the change of process. (lmbench's lat_ctx -s 0
 * prints that difference.)
 * Beside the two processes of the smallest ring there can be more in the ring (-r), others that
 * sleep in a read() of their own (-a), and others that are always runnable (-b). Those are as nice
 * as can be: a woken member of the ring goes before them, and the median shows what choosing it
 * costs and not how long it had to wait.
 * With -v 16, 32 or 64 each member fills its vector registers of that many bytes before it hands
 * over: state that the kernel then has to save. Both columns have the filling.
 * Needs: one processor for all, or two members of the ring run at once; room for that many
 * processes (ulimit -u), a pipe for each member.
 * Run:   taskset -c 0 sched-switch -r 98
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "micro.h"
#include "vector.h"

#define MAX_SAMPLES   100000
#define MAX_PROCESSES 100000
#define MAX_BUSY      10000
#define BATCH         100 /* hand-overs in a sample at least: long against reading the clock */
#define NICEST        19
#define SMALLEST_RING 2
#define PATIENCE      300 /* seconds for the whole run */

struct sample {
    double handover_ns;
    double pipe_ns;
};

/* We are a member too: what is written to `out` comes to `in` when it has been round. */
struct ring {
    int in;
    int out;
    size_t count; /* of the others */
    pid_t *pid;
};

static vector_fill_fn fill_registers;

static void make_pipe(int pipe_fd[2])
{
    if (pipe(pipe_fd) == -1)
        die_errno("pipe");
}

static void close_fd(int fd)
{
    if (close(fd) == -1)
        die_errno("close");
}

/* One byte of a member to the next; false at the end of file. */
static bool receive(int fd)
{
    char byte;
    ssize_t n;
    do {
        n = read(fd, &byte, 1);
    } while (n == -1 && errno == EINTR);
    if (n == -1)
        die_errno("read");
    return n == 1;
}

static void send_on(int fd)
{
    char byte = 0;
    ssize_t n;
    do {
        n = write(fd, &byte, 1);
    } while (n == -1 && errno == EINTR);
    if (n != 1)
        die_errno("write");
}

static _Noreturn void member(int in, int out)
{
    while (receive(in)) {
        fill_registers();
        send_on(out);
    }
    _exit(EXIT_SUCCESS);
}

/*
 * Makes a ring of us and `others`; false, with errno set, if there is no room for all. Each member
 * holds two descriptors and so do we, because those of the others are closed before it is made.
 * When we end, however that is, the end of file goes round and ends all of them.
 */
static bool ring_make(struct ring *ring, size_t others)
{
    int link[2];
    make_pipe(link);
    *ring = (struct ring){.in = link[0], .out = link[1]};
    ring->pid = samples_new(others + 1, sizeof *ring->pid);
    for (ring->count = 0; ring->count < others; ring->count++) {
        make_pipe(link);
        pid_t pid = fork();
        if (pid == 0) {
            close_fd(ring->out);
            close_fd(link[0]);
            member(ring->in, link[1]);
        }
        if (pid == -1)
            return false;
        ring->pid[ring->count] = pid;
        close_fd(ring->in);
        close_fd(link[1]);
        ring->in = link[0];
    }
    return true;
}

static void ring_end(struct ring *ring)
{
    close_fd(ring->out);
    close_fd(ring->in);
    for (size_t i = 0; i < ring->count; i++) {
        int status;
        while (waitpid(ring->pid[i], &status, 0) == -1)
            if (errno != EINTR)
                die_errno("waitpid");
        if (status != 0)
            die(EXIT_FAILURE, "a member of the ring failed");
    }
    free(ring->pid);
}

static void lap(const struct ring *ring)
{
    fill_registers();
    send_on(ring->out);
    if (!receive(ring->in))
        die(EXIT_FAILURE, "a member of the ring ended");
}

/* Nanoseconds of one hand-over, the mean of at least BATCH. */
static double handover_ns(const struct ring *ring)
{
    size_t members = ring->count + 1;
    size_t laps = (BATCH + members - 1) / members;
    uint64_t start = now_ns();
    for (size_t i = 0; i < laps; i++)
        lap(ring);
    return (double)(now_ns() - start) / (double)(laps * members);
}

/* Returns how many it made: less than count, with errno set, if fork failed. */
static size_t sleepers_make(const struct children *sleepers, size_t count)
{
    for (size_t made = 0; made < count; made++) {
        pid_t pid = fork();
        if (pid == 0)
            child_live(sleepers);
        if (pid == -1)
            return made;
        children_await_one(sleepers);
    }
    return count;
}

/* Takes the samples; false, with errno set, if not all processes could be made. */
static bool measure(struct sample *samples, size_t count, size_t ring_size, size_t busy)
{
    struct ring ring, alone;
    struct spinners spinners;
    ring_make(&alone, 0);
    bool made = ring_make(&ring, ring_size - 1);
    int fork_errno = errno;
    if (made) {
        made = spinners_start(&spinners, busy, NICEST);
        fork_errno = errno;
        lap(&ring); /* the first runs of all */
        for (size_t i = 0; made && i < count; i++)
            samples[i] = (struct sample){handover_ns(&ring), handover_ns(&alone)};
        spinners_end(&spinners);
    }
    ring_end(&ring);
    ring_end(&alone);
    errno = fork_errno;
    return made;
}

static void print_samples(const struct sample *samples, size_t count)
{
    puts("handover_ns\tpipe_ns");
    for (size_t i = 0; i < count; i++)
        printf("%.1f\t%.1f\n", samples[i].handover_ns, samples[i].pipe_ns);
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 50, 0}, {'r', "MORE_IN_RING", 0, MAX_PROCESSES, 0, 0},
        {'a', "ASLEEP", 0, MAX_PROCESSES, 0, 0}, {'b', "BUSY", 0, MAX_BUSY, 0, 0},
        {'v', "VECTOR_BYTES", 0, 64, 0, 0},
    };
    read_command_line(argc, argv, &(struct command_line){options, 5, "", 0, 0});
    size_t count = options[0].value, asleep = options[2].value;
    fill_registers = vector_fill_of(options[4].value);
    struct sample *samples = samples_new(count, sizeof *samples);
    struct children sleepers;
    children_open(&sleepers, PATIENCE);

    /* First those that sleep: made later, they would hold the ring open. */
    size_t sleeping = sleepers_make(&sleepers, asleep);
    bool made = sleeping == asleep &&
                measure(samples, count, SMALLEST_RING + options[1].value, options[3].value);
    int fork_errno = errno;
    children_end(&sleepers, sleeping);
    if (!made)
        die(EXIT_FAILURE, "fork: %s", strerror(fork_errno));
    print_samples(samples, count);
    free(samples);
    return EXIT_SUCCESS;
}
