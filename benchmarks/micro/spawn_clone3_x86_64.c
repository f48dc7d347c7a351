/*
 * No C library offers clone3(2), and syscall(2) cannot call it: the child comes back on a stack of
 * its own, on which there is nothing to return to. So its first steps are written here.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stddef.h>

#include "spawn_ways.h"

#define SYS_CLONE3 435
#define STACK_SIZE 65536

/* As the kernel had it first (5.3): it takes any version, by its size. Not every libc has it. */
struct clone3_args {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

/* One child at a time: the parent stands still until the child no longer uses this. */
static _Alignas(16) char stack[STACK_SIZE];

pid_t spawn_by_clone3(const char *program)
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
                     "movq %[program], %%rdi\n\t"
                     "call *%[child]\n\t"
                     "1:"
                     : "+a"(result)
                     : "D"(&args),
                       "S"(sizeof args), [program] "r"(program), [child] "r"(spawn_child)
                     : "rcx", "r11", "memory");
    if (result > 0)
        return (pid_t)result;
    errno = (int)-result;
    return -1;
}
