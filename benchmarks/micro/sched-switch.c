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
 * over: state that the kernel then has to save. Both columns have the filling. Without
 * -v each member begins with none of that state: glibc's memcpy and strlen have left some behind.
 * in_use is 1 if there is some right after a hand-over, as XGETBV of 1 tells, and 2 where the
 * processor does not tell.
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

#define MAX_SAMPLES   100000
#define MAX_PROCESSES 100000
#define MAX_BUSY      10000
#define BATCH         100 /* hand-overs in a sample at least: long against reading the clock */
#define NICEST        19
#define SMALLEST_RING 2
#define PATIENCE      300 /* seconds for the whole run */

enum in_use { CLEAN, IN_USE, UNKNOWN };

struct sample {
    double handover_ns;
    double pipe_ns;
    enum in_use in_use;
};

/*
 * The vector registers: SSE, AVX and AVX-512 of x86-64; nothing elsewhere.
 *
 * XSAVES leaves out what was not written since it was last loaded (Intel SDM, volume 1, 13.6), so
 * whoever wants to see the state saved has to write the registers before each change of process.
 * The upper parts then count as used until something executes vzeroupper: the memcpy of a libc
 * does, read() and write() do not. So the functions below are not compiled for AVX: gcc would put a
 * vzeroupper before their return. Nor would it then use the registers from 16 on, so that it need
 * not be told of them.
 */
typedef void (*fill_fn)(void);

static void fill_nothing(void)
{
}

#ifdef __x86_64__

#define LOW  "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
#define HIGH "16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"
#define LOW_CLOBBERED                                                                              \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

/* All ones in each: zeros might be left out again as the state a register begins with. */
static void fill_sse(void)
{
    __asm__ volatile(".irp n," LOW "\n\t"
                     "pcmpeqd %%xmm\\n, %%xmm\\n\n\t"
                     ".endr"
                     :
                     :
                     : LOW_CLOBBERED);
}

static void fill_avx(void)
{
    __asm__ volatile(".irp n," LOW "\n\t"
                     "vcmptrueps %%ymm0, %%ymm0, %%ymm\\n\n\t"
                     ".endr"
                     :
                     :
                     : LOW_CLOBBERED);
}

static void fill_avx512(void)
{
    __asm__ volatile(".irp n," LOW "," HIGH "\n\t"
                     "vpternlogd $0xff, %%zmm\\n, %%zmm\\n, %%zmm\\n\n\t"
                     ".endr"
                     :
                     :
                     : LOW_CLOBBERED);
}

#define LEAF_XSAVE  13    /* of cpuid: part 1, bit 2 of eax says that XGETBV takes 1 */
#define VECTORS     0xe4U /* AVX and the three parts of AVX-512, as XINUSE has them */
#define XSAVE_BYTES 576   /* without what follows the header, which says that nothing does */
#define MXCSR_AT    24

/* Brings the vector registers but the 16 of SSE to the state of the beginning (SDM, 13.6, 13.8). */
static void forget_vectors(void)
{
    static unsigned char area[XSAVE_BYTES] __attribute__((aligned(64)));
    if (!__builtin_cpu_supports("avx"))
        return;
    __asm__ volatile("stmxcsr %0" : "=m"(*(uint32_t *)(void *)(area + MXCSR_AT)));
    __asm__ volatile("xrstor %0" : : "m"(area), "a"(VECTORS), "d"(0));
}

/* Whether they are not in that state. */
static enum in_use vectors_in_use(void)
{
    uint32_t a = LEAF_XSAVE, b, c = 1, d;
    if (!__builtin_cpu_supports("avx")) /* a processor that has AVX has the leaf */
        return UNKNOWN;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    if ((a & 4) == 0)
        return UNKNOWN;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
    return (a & VECTORS) == 0 ? CLEAN : IN_USE;
}

/* What fills all registers of that many bytes; exits 77 if there are none, or not known here. */
static fill_fn vector_fill_of(size_t bytes)
{
    __builtin_cpu_init();
    if (bytes == 0)
        return fill_nothing;
    if (bytes == 16)
        return fill_sse;
    if (bytes == 32 && __builtin_cpu_supports("avx"))
        return fill_avx;
    if (bytes == 64 && __builtin_cpu_supports("avx512f"))
        return fill_avx512;
    die(EXIT_UNSUPPORTED, "this processor has no vector registers of %lu bytes",
        (unsigned long)bytes);
}

#else

static fill_fn vector_fill_of(size_t bytes)
{
    if (bytes != 0)
        die(EXIT_UNSUPPORTED, "the vector registers are filled by instructions of x86-64 only");
    return fill_nothing;
}

static void forget_vectors(void)
{
}

static enum in_use vectors_in_use(void)
{
    return UNKNOWN;
}

#endif

/* We are a member too: what is written to `out` comes to `in` when it has been round. */
struct ring {
    int in;
    int out;
    size_t count; /* of the others */
    pid_t *pid;
};

static fill_fn fill_registers;

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
    if (fill_registers == fill_nothing)
        forget_vectors();
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
static double handover_ns(const struct ring *ring, enum in_use *in_use)
{
    size_t members = ring->count + 1;
    size_t laps = (BATCH + members - 1) / members;
    uint64_t start = now_ns();
    for (size_t i = 0; i < laps; i++)
        lap(ring);
    *in_use = vectors_in_use();
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

static void measure_one(struct sample *s, const struct ring *ring, const struct ring *alone)
{
    enum in_use alone_in_use;
    s->handover_ns = handover_ns(ring, &s->in_use);
    s->pipe_ns = handover_ns(alone, &alone_in_use);
    if (alone_in_use > s->in_use)
        s->in_use = alone_in_use;
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
        if (fill_registers == fill_nothing)
            forget_vectors();
        for (size_t i = 0; made && i < count; i++)
            measure_one(&samples[i], &ring, &alone);
        spinners_end(&spinners);
    }
    ring_end(&ring);
    ring_end(&alone);
    errno = fork_errno;
    return made;
}

static void print_samples(const struct sample *samples, size_t count)
{
    puts("handover_ns\tpipe_ns\tin_use");
    for (size_t i = 0; i < count; i++)
        printf("%.1f\t%.1f\t%d\n", samples[i].handover_ns, samples[i].pipe_ns,
               (int)samples[i].in_use);
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
