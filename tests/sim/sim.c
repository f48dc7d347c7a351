/*
 * sim.c: a server in a simulated world. The program is a server, server.c and all, but what it asks
 * of the kernel, of malloc() and of the clock goes to a model (ld(1), --wrap): there is no network,
 * no disk, and a minute passes in a millisecond. The model draws from a seed who comes and what
 * goes wrong: clients that vanish, drip, do not read, reset; descriptors and memory that run out;
 * disks that answer late or never; calls that fail. And at each step it knows what must be so:
 *
 * - a client that does all in time has each reply, whole, in order and to the byte, or a cause
 * - no descriptor is used after it is closed, no memory after it is freed (AddressSanitizer)
 * - WANT_READ and WANT_WRITE keep their promise (want.h)
 * - no client is held for ever, and none waits for a server that sleeps
 * - once all have left the server has what it had at first, no more
 *
 * Each world is a process. The same seed is the same world, to the last call: so one that fails is
 * played again for ever shorter until the shortest is found that still fails, and its last steps
 * are printed. The idea is that of the simulators of FoundationDB and TigerBeetle (VOPR).
 *
 * Run: make soak-sim SECONDS=60     or: build/asan/09-epoll_sim --seed 7 --steps 250000
 */
#include "sim.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINES      4000
#define LINE       160
#define STATUS_BAD 3
#define CPU_MOST   5 /* seconds of a world: a loop without a call is one without a step */

/* What a world leaves behind. */
static struct report {
    long steps;
    bool judged; /* else it has crashed */
    char fault[300];
    long lines;
    char line[LINES][LINE];
} * report;
long *steps_done;

ssize_t __real_pread64(int fd, void *bytes, size_t len, off_t at);
static int say_fd; /* stderr of the server */
static long shown = 60;

/* ---- inside a world */

void trace_line(const char *format, ...)
{
    char *to = report->line[report->lines++ % LINES];
    int n = snprintf(to, LINE, "%7ld %9.3f s  ", w.steps, (double)w.now / S);
    va_list args;

    va_start(args, format);
    vsnprintf(to + n, LINE - (size_t)n, format, args);
    va_end(args);
}

_Noreturn void __real__exit(int status);

static _Noreturn void leave_world(int status)
{
    report->judged = true;
    __real__exit(status);
}

void fault(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(report->fault, sizeof report->fault, format, args);
    va_end(args);
    leave_world(STATUS_BAD);
}

void end_world(void)
{
    leave_world(EXIT_SUCCESS);
}

_Noreturn void __wrap_exit(int status);
_Noreturn void __wrap_exit(int status)
{
    fault("the server ends by itself: exit(%d)", status);
}

/* How each server may be started. */
static const struct way {
    const char *server, *options[3];
} ways[] = {
    {"05b-nonblocking", {NULL}},
    {"06-select", {NULL}},
    {"07-poll", {NULL}},
    {"09-epoll", {NULL}},
    {"09-epoll", {"-e"}},
    {"10-kqueue", {NULL}},
    {"11-sendfile", {NULL}},
    {"11-sendfile", {"-s", "more+read"}},
    {"11-sendfile", {"-s", "cork+sendfile"}},
    {"11-sendfile", {"-s", "writev+read"}},
    {"11-sendfile", {"-s", "two+read"}},
    {"12-aio", {NULL}},
    {"15-slashdot", {"-w", "1"}},
};
#define WAYS (sizeof ways / sizeof *ways)

static const struct way *draw_way(void)
{
    const struct way *fitting[WAYS];
    unsigned n = 0;

    for (size_t i = 0; i < WAYS; i++)
        if (strcmp(ways[i].server, w.server) == 0)
            fitting[n++] = &ways[i];
    if (n == 0) {
        fprintf(stderr, "sim: the program is named after a server, and %s is none\n", w.server);
        __real__exit(2);
    }
    return fitting[pick(n)];
}

static void draw_world(void)
{
    static const int timeouts[] = {2, 3, 5, 20};

    w.now = 1000 * S;
    w.next_due = NEVER;
    w.timeout_s = timeouts[pick(4)];
    w.peers_most = 4 + (int)pick(PEERS - 4);
    w.siege = one_in(4);
    w.fd_limit = one_in(3) || w.siege ? 14 + (int)pick(20) : FDS;
    w.memory_fails = one_in(4) ? 20 + (int)pick(400) : 0;
    w.calls_fail = one_in(4) ? 50 + (int)pick(500) : 0;
    w.cold = one_in(2) ? (int)pick(100) : 5;
    w.disk_dies = one_in(5);
    if (w.siege) {
        w.timeout_s = 20;
        w.peers_most = PEERS;
        w.memory_fails = w.calls_fail = 0;
        w.disk_dies = false;
    }
    w.shortage = -1;
    w.phase = CHAOS;
}

int __real_main(int argc, char **argv);

static _Noreturn void live(void)
{
    const struct rlimit cpu = {CPU_MOST, CPU_MOST};
    char name[40], seconds[8];
    char *argv[10] = {name, (char *)"-t", seconds};
    int argc = 3;

    dup2(say_fd, STDERR_FILENO);
    dup2(say_fd, STDOUT_FILENO);
    setrlimit(RLIMIT_CPU, &cpu);
    draw_world();
    const struct way *way = draw_way();
    snprintf(name, sizeof name, "%s", w.server);
    snprintf(seconds, sizeof seconds, "%d", w.timeout_s);
    for (int i = 0; i < 3 && way->options[i] != NULL; i++)
        argv[argc++] = (char *)way->options[i];
    TRACE("%s -t %d %s: %s%s%d descriptors, memory fails 1 in %d, calls 1 in %d", name, w.timeout_s,
          way->options[0] != NULL ? way->options[argc - 4] : "", w.siege ? "siege, " : "",
          w.disk_dies ? "the disk dies, " : "", w.fd_limit, w.memory_fails, w.calls_fail);
    int status = __real_main(argc, argv);
    if (!w.told || status != EXIT_SUCCESS)
        fault("main() returns %d, and the signal has %scome", status, w.told ? "" : "not ");
    if (sockets_held() > 0)
        fault("main() returns with %d connections open", sockets_held());
    for (long long until = w.now + 3 * S; pass_time(until);)
        ; /* what is on its way arrives, and is judged */
    end_world();
}

/* ---- outside */

/* Returns 0, or a status that says that the world has failed. */
static int run_world(uint64_t seed, long chaos_for, bool traced)
{
    int status;

    report->lines = report->steps = 0;
    report->fault[0] = '\0';
    report->judged = false;
    if (ftruncate(say_fd, 0) < 0 || lseek(say_fd, 0, SEEK_SET) < 0)
        perror("sim: ftruncate");
    pid_t pid = fork();
    if (pid == 0) {
        w.seed = seed;
        w.chaos_for = chaos_for;
        w.traced = traced;
        live();
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0) {
        perror("sim: fork");
        __real__exit(2);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (report->fault[0] == '\0')
        snprintf(report->fault, sizeof report->fault, "%s %d, and what it said is below",
                 WIFSIGNALED(status) ? "killed by signal" : "the server exits with",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return STATUS_BAD;
}

static void print_said(void)
{
    char bytes[6000];
    ssize_t n = __real_pread64(say_fd, bytes, sizeof bytes, 0);

    if (n > 0)
        printf("  it said:\n%.*s\n", (int)n, bytes);
}

/* The shortest time of chaos after which the world still fails: by halves, as if what fails after
 * so many steps failed after more. */
static long cut(uint64_t seed, long chaos_for)
{
    long good = 0, bad = chaos_for;

    while (bad - good > 1) {
        long middle = good + (bad - good) / 2;
        if (run_world(seed, middle, false) != 0)
            bad = middle;
        else
            good = middle;
    }
    return bad;
}

static int show(uint64_t seed, long chaos_for)
{
    if (run_world(seed, chaos_for, true) == 0) {
        printf("%s: world %llu, %ld steps of chaos: no fault\n", w.server, (unsigned long long)seed,
               chaos_for);
        return 0;
    }
    long first = report->lines > shown ? report->lines - shown : 0;
    printf("%s: %s\n", w.server, report->fault);
    printf("  again: build/asan/%s_sim --world %llu --chaos %ld\n", w.server,
           (unsigned long long)seed, chaos_for);
    printf("  step, time and what happened, the last %ld of %ld lines:\n", report->lines - first,
           report->lines);
    for (long i = first; i < report->lines; i++)
        printf("  %s\n", report->line[i % LINES]);
    if (!report->judged)
        print_said();
    return 1;
}

static uint64_t next_seed(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}

static int run(uint64_t seed, long steps, long seconds)
{
    uint64_t state = seed;
    long done = 0, worlds = 0;
    struct timespec began, now;

    __real_clock_gettime(CLOCK_MONOTONIC, &began);
    do {
        uint64_t world = next_seed(&state);
        long chaos_for = 500 + (long)(world % 6000);
        worlds++;
        if (run_world(world, chaos_for, false) != 0) {
            long failed = done + report->steps;
            printf("%s: seed %llu: world %ld (%llu) fails, after %ld steps in all: %s\n", w.server,
                   (unsigned long long)seed, worlds, (unsigned long long)world, failed,
                   report->fault);
            fflush(stdout);
            return show(world, cut(world, chaos_for));
        }
        done += report->steps;
        __real_clock_gettime(CLOCK_MONOTONIC, &now);
    } while (seconds > 0 ? now.tv_sec - began.tv_sec < seconds : done < steps);
    double took = (double)(now.tv_sec - began.tv_sec) + (double)(now.tv_nsec - began.tv_nsec) / 1e9;
    printf("%s: seed %llu: %ld steps in %ld worlds, no fault, %.0f steps a second\n", w.server,
           (unsigned long long)seed, done, worlds, (double)done / took);
    return 0;
}

int __wrap_main(int argc, char **argv);
int __wrap_main(int argc, char **argv)
{
    static char name[40];
    uint64_t seed = 1, world = 0;
    long steps = 250000, seconds = 0, chaos_for = 6500;
    const char *slash = strrchr(argv[0], '/');

    snprintf(name, sizeof name, "%s", slash != NULL ? slash + 1 : argv[0]);
    name[strcspn(name, "_")] = '\0';
    w.server = name;
    for (int i = 1; i + 1 < argc; i += 2) {
        unsigned long long value = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seed") == 0)
            seed = value;
        else if (strcmp(argv[i], "--steps") == 0)
            steps = (long)value;
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = (long)value;
        else if (strcmp(argv[i], "--world") == 0)
            world = value;
        else if (strcmp(argv[i], "--chaos") == 0)
            chaos_for = (long)value;
        else if (strcmp(argv[i], "--lines") == 0)
            shown = (long)value;
    }
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    say_fd = memfd_create("said", 0);
    if (report == MAP_FAILED || say_fd < 0) {
        perror("sim");
        return 2;
    }
    steps_done = &report->steps;
    setvbuf(stdout, NULL, _IOLBF, 0);
    files_make();
    return world > 0 ? show(world, chaos_for) : run(seed, steps, seconds);
}
