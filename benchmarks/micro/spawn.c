/*
 * spawn: what do fork(), vfork(), posix_spawn() and clone3() cost, while the parent holds ever more
 * memory?
 *
 * Shows: return_ns, until the call has returned in the parent; total_ns, until the child has ended
 * and waitpid() has returned. The child executes PROGRAM, or ends at once if none is named. With
 * vfork(), posix_spawn() and clone3() the parent stands still until the child has a memory of its
 * own or none, so return_ns holds the child's exec or exit. mib is what the parent holds, in pages
 * of 4 KiB: 0, 64, 128, 256 ... up to MIB. A call that fails is a line with the errno in column
 * error, and its times say nothing.
 * Needs: MIB of free memory; posix_spawn() a libc that has it, clone3() Linux 5.3 and x86-64 (else
 * status 77).
 * Run:   spawn -n 10 -r 256 vfork /bin/true
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "micro.h"
#include "resident.h"
#include "spawn_ways.h"

#define MAX_SAMPLES 10000
#define MAX_MIB     65536
#define FIRST_MIB   64

struct way {
    const char *name;
    pid_t (*spawn)(const char *program);
};

static const struct way ways[] = {
    {"fork", spawn_by_fork},
    {"vfork", spawn_by_vfork},
    {"posix_spawn", spawn_by_posix_spawn},
    {"clone3", spawn_by_clone3},
};

struct sample {
    size_t mib;
    uint64_t return_ns, total_ns;
    int error;
};

static const struct way *find_way(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

static void measure(struct sample *sample, const struct way *way, const char *program)
{
    int status;
    pid_t ended;
    uint64_t start = now_ns();
    pid_t pid = way->spawn(program);
    sample->return_ns = now_ns() - start;
    if (pid == -1) {
        sample->error = errno;
        return;
    }
    do {
        ended = waitpid(pid, &status, 0);
    } while (ended == -1 && errno == EINTR);
    sample->total_ns = now_ns() - start;
    if (ended == -1)
        die_errno("waitpid");
    if (status != 0)
        die(EXIT_FAILURE, "%s: the child could not execute it, or failed", program);
}

static void print_samples(const struct sample *samples, size_t count)
{
    puts("mib\treturn_ns\ttotal_ns\terror");
    for (size_t i = 0; i < count; i++)
        printf("%lu\t%llu\t%llu\t%s\n", (unsigned long)samples[i].mib,
               (unsigned long long)samples[i].return_ns, (unsigned long long)samples[i].total_ns,
               error_name(samples[i].error));
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 100, 0},
        {'r', "MIB", 0, MAX_MIB, 0, 0},
    };
    struct command_line line = {options, 2, "fork|vfork|posix_spawn|clone3 [PROGRAM]", 1, 2};
    char **arguments = read_command_line(argc, argv, &line);
    const struct way *way = find_way(arguments[0]);
    const char *program = arguments[1];
    if (way == NULL || (way->spawn == spawn_by_posix_spawn && program == NULL))
        refuse(&line);
    children_signals();

    size_t per_size = options[0].value, most = options[1].value, count = 0, sizes = 0;
    for (size_t mib = 0; mib <= most; mib = resident_next(mib, FIRST_MIB))
        sizes++;
    struct sample *samples = samples_new(sizes * per_size, sizeof *samples);
    char *memory = resident_reserve(most * MIB, SMALL_PAGES);
    for (size_t mib = 0, before = 0; mib <= most; mib = resident_next(mib, FIRST_MIB)) {
        resident_fill(memory + before * MIB, memory + mib * MIB);
        before = mib;
        for (size_t i = 0; i < per_size; i++, count++) {
            samples[count].mib = mib;
            measure(&samples[count], way, program);
        }
    }
    print_samples(samples, count);
    free(samples);
    return EXIT_SUCCESS;
}
