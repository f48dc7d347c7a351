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
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __dietlibc__
#include <spawn.h>
#endif

#include "children.h"
#include "die.h"
#include "micro.h"
#include "resident.h"

#define MAX_SAMPLES    10000
#define MAX_MIB        65536
#define FIRST_MIB      64
#define CANNOT_EXECUTE 127 /* the child's status: what shells and posix_spawn() use too */

/*
 * The ways: the child executes the program, or, if that is NULL, ends at once. Each returns the
 * child's process id, or -1 with errno.
 */

/* The child of vfork() may be on our stack, in our memory: it calls nothing but these two. */
static _Noreturn void spawn_child(const char *program)
{
    char *arguments[] = {(char *)program, NULL};
    char *environment[] = {NULL};
    if (program == NULL)
        _exit(EXIT_SUCCESS);
    execve(program, arguments, environment);
    _exit(CANNOT_EXECUTE);
}

/* The child has the parent's memory as its own, to be copied page by page when one writes. */
static pid_t spawn_by_fork(const char *program)
{
    pid_t pid = fork();
    if (pid == 0)
        spawn_child(program);
    return pid;
}

/* The child runs in the parent's memory, on its stack, and the parent waits until it is gone. */
static pid_t spawn_by_vfork(const char *program)
{
    pid_t pid = vfork();
    if (pid == 0)
        spawn_child(program);
    return pid;
}

/* The same by the library: posix_spawn(3). */
static pid_t spawn_by_posix_spawn(const char *program)
{
#ifdef __dietlibc__
    die(EXIT_UNSUPPORTED, "%s: this C library has no posix_spawn()", program);
#else
    char *arguments[] = {(char *)program, NULL};
    char *environment[] = {NULL};
    pid_t pid;
    errno = posix_spawn(&pid, program, NULL, NULL, arguments, environment);
    return errno == 0 ? pid : -1;
#endif
}

/*
 * The same by the system call under it, clone3(2) with CLONE_VM and CLONE_VFORK, on a stack of the
 * child's own. No C library offers it, and syscall(2) cannot call it: the child comes back to a
 * stack on which there is nothing to return to. So its first steps are written here.
 */
#ifdef __x86_64__

#define SYS_CLONE3 435
#define STACK_SIZE 65536

/* As the kernel had it first (5.3): it takes any version, by its size. Not every libc has it. */
struct clone3_args {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

/* One child at a time: the parent stands still until the child no longer uses this. */
static _Alignas(16) char stack[STACK_SIZE];

static pid_t spawn_by_clone3(const char *program)
{
    struct clone3_args args = {
        .flags = CLONE_VM | CLONE_VFORK,
        .exit_signal = SIGCHLD,
        .stack = (uintptr_t)stack,
        .stack_size = sizeof stack,
    };
    long result = SYS_CLONE3;
    __asm__ volatile("syscall\n\t"
                     "testq %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xorl %%ebp, %%ebp\n\t" /* no frame above this one */
                     "movq %%rdx, %%rdi\n\t"
                     "call *%%rbx\n\t"
                     "1:"
                     : "+a"(result)
                     : "D"(&args), "S"(sizeof args), "d"(program), "b"(spawn_child)
                     : "rcx", "r11", "memory");
    if (result > 0)
        return (pid_t)result;
    errno = (int)-result;
    return -1;
}

#else

static pid_t spawn_by_clone3(const char *program)
{
    (void)program;
    die(EXIT_UNSUPPORTED, "the child's first steps after clone3() are written for x86-64 only");
}

#endif

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
