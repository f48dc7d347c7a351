/*
 * ticks: how often does the kernel interrupt a process, and how often does the process itself give
 * the processor away?
 *
 * Shows: one line a sample, with rates a second. busy_ticks and idle_ticks are the timer interrupts
 * of our processor (/proc/interrupts) while we compute and while we sleep. blocks is the voluntary
 * changes of process for each of 100 calls that had to wait. busy_gives is voluntary changes,
 * busy_stops involuntary ones while we compute; stops_beside the latter beside one more process
 * that computes. processes is how many the system has, runnable how many of its tasks want a
 * processor, us among them (/proc/stat).
 * Needs: to stay on one processor (taskset); /proc with a line of timer interrupts.
 * Run:   taskset -c 0 ticks -n 4
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "children.h"
#include "die.h"
#include "micro.h"

#define MAX_SAMPLES 1000
#define MAX_MS      10000
#define NS_PER_MS   1000000U
#define WAITS       100
#define LINE_BYTES  65536 /* /proc/interrupts has a column for each processor */
#define PATIENCE    300   /* seconds for the whole run */

/* What happened to us up to now, or in a window: then a second. */
struct rates {
    double ticks;
    double gives;
    double stops;
    double s;
};

struct sample {
    struct rates busy;
    struct rates idle;
    struct rates beside;
    double blocks;
    size_t processes;
    unsigned long runnable;
};

static char line[LINE_BYTES];

static FILE *open_proc(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        die(EXIT_UNSUPPORTED, "%s: %s", path, strerror(errno));
    return file;
}

static void close_proc(FILE *file, const char *path)
{
    if (ferror(file))
        die_errno("read %s", path);
    if (fclose(file) == EOF)
        die_errno("close %s", path);
}

/* The number behind `word` at the start of a line of /proc/stat. */
static unsigned long proc_stat(const char *word)
{
    FILE *file = open_proc("/proc/stat");
    unsigned long value = 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, word, strlen(word)) == 0)
            value = strtoul(line + strlen(word), NULL, 10);
    close_proc(file, "/proc/stat");
    return value;
}

/* Field 39 of /proc/self/stat, proc(5); the name in field 2 may hold blanks and brackets. */
static unsigned long our_processor(void)
{
    FILE *file = open_proc("/proc/self/stat");
    const char *at = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    for (int field = 2; at != NULL && field < 39; field++)
        at = strchr(at + 1, ' ');
    if (at == NULL)
        die(EXIT_UNSUPPORTED, "/proc/self/stat does not say where we run");
    close_proc(file, "/proc/self/stat");
    return strtoul(at, NULL, 10);
}

/* Which column of /proc/interrupts is ours: processors that are off have none. */
static int column_of(unsigned long processor, const char *head)
{
    char name[32];
    int column = 0;
    snprintf(name, sizeof name, "CPU%lu", processor);
    for (const char *at = strstr(head, "CPU"); at != NULL; at = strstr(at + 1, "CPU"), column++)
        if (strncmp(at, name, strlen(name)) == 0 && !isdigit((unsigned char)at[strlen(name)]))
            return column;
    die(EXIT_UNSUPPORTED, "/proc/interrupts has no column %s", name);
}

static bool is_timer(const char *text)
{
    return strstr(text, "LOC:") != NULL || strstr(text, "arch_timer") != NULL ||
           strstr(text, "riscv-timer") != NULL;
}

/* Timer interrupts of our processor since the system started. */
static uint64_t timer_interrupts(void)
{
    unsigned long processor = our_processor();
    FILE *file = open_proc("/proc/interrupts");
    int column = fgets(line, sizeof line, file) ? column_of(processor, line) : 0;
    uint64_t sum = 0;
    bool found = false;
    while (fgets(line, sizeof line, file) != NULL) {
        char *at = strchr(line, ':');
        if (at == NULL || !is_timer(line))
            continue;
        at++;
        for (int other = 0; other < column; other++)
            strtoull(at, &at, 10);
        sum += strtoull(at, NULL, 10);
        found = true;
    }
    close_proc(file, "/proc/interrupts");
    if (!found)
        die(EXIT_UNSUPPORTED, "/proc/interrupts has no line of timer interrupts that we know");
    return sum;
}

static struct rates counted(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == -1)
        die_errno("getrusage");
    return (struct rates){.ticks = (double)timer_interrupts(),
                          .gives = (double)usage.ru_nvcsw,
                          .stops = (double)usage.ru_nivcsw,
                          .s = (double)now_ns() / 1e9};
}

static struct rates rates_since(struct rates before)
{
    struct rates now = counted();
    double s = now.s - before.s;
    return (struct rates){.ticks = (now.ticks - before.ticks) / s,
                          .gives = (now.gives - before.gives) / s,
                          .stops = (now.stops - before.stops) / s,
                          .s = s};
}

static void rest(uint64_t ns)
{
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000U), .tv_nsec = ns % 1000000000U};
    while (nanosleep(&left, &left) == -1)
        if (errno != EINTR)
            die_errno("nanosleep");
}

static struct rates compute(uint64_t ns)
{
    struct rates before = counted();
    uint64_t end = now_ns() + ns;
    while (now_ns() < end)
        ;
    return rates_since(before);
}

static struct rates idle(uint64_t ns)
{
    struct rates before = counted();
    rest(ns);
    return rates_since(before);
}

static struct rates compute_beside_another(uint64_t ns)
{
    struct spinners another;
    struct rates found = {.s = 0};
    bool made = spinners_start(&another, 1, 0);
    int fork_errno = errno;
    if (made)
        found = compute(ns);
    spinners_end(&another);
    if (!made)
        die(EXIT_FAILURE, "fork: %s", strerror(fork_errno));
    return found;
}

/* Voluntary changes of process for each call that has to wait. */
static double blocks(void)
{
    struct rates before = counted();
    for (int i = 0; i < WAITS; i++)
        rest(NS_PER_MS / 10);
    return (counted().gives - before.gives) / WAITS;
}

static size_t processes(void)
{
    size_t count = 0;
    DIR *proc = opendir("/proc");
    if (proc == NULL)
        die_errno("opendir /proc");
    errno = 0;
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;)
        count += isdigit((unsigned char)entry->d_name[0]) != 0;
    if (errno != 0)
        die_errno("readdir /proc");
    if (closedir(proc) == -1)
        die_errno("closedir");
    return count;
}

static void print_samples(const struct sample *sample, size_t count)
{
    puts("busy_ticks\tidle_ticks\tblocks\tbusy_gives\tbusy_stops\tstops_"
         "beside\tprocesses\trunnable");
    for (const struct sample *s = sample; s < sample + count; s++)
        printf("%.1f\t%.1f\t%.2f\t%.1f\t%.1f\t%.1f\t%lu\t%lu\n", s->busy.ticks, s->idle.ticks,
               s->blocks, s->busy.gives, s->busy.stops, s->beside.stops,
               (unsigned long)s->processes, s->runnable);
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 4, 0},
        {'t', "MILLISECONDS", 1, MAX_MS, 250, 0},
    };
    read_command_line(argc, argv, &(struct command_line){options, 2, "", 0, 0});
    size_t count = options[0].value;
    uint64_t window = options[1].value * NS_PER_MS;
    struct sample *samples = samples_new(count, sizeof *samples);
    struct children none; /* for its patience alone */
    children_open(&none, PATIENCE);

    for (struct sample *s = samples; s < samples + count; s++) {
        s->idle = idle(window);
        s->runnable = proc_stat("procs_running");
        s->processes = processes();
        s->busy = compute(window);
        s->beside = compute_beside_another(window);
        s->blocks = blocks();
    }
    children_end(&none, 0);
    print_samples(samples, count);
    free(samples);
    return EXIT_SUCCESS;
}
