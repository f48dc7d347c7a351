/*
 * switch_asm.c: by hand. To its caller switch_stack() is a function like others, and the caller
 * keeps in registers across a call only those that a called function must not change. These few are
 * saved; for the others the compiler has taken care.
 *
 * Not saved are the modes of floating-point arithmetic, which no server here changes. With a shadow
 * stack (CET of x86-64) the processor would not let us return to the other stack; a Linux
 * program has one only if it was asked for when it was started.
 */
#include "16-coroutines/switch.h"

#include <stdint.h>
#include <string.h>

#if defined(__APPLE__)
#error "written for ELF: names have no underscore in front"
#endif

/* *from = sp, once the registers are pushed; sp = to; then the registers are popped, and it goes on
 * where that stack was left. The arguments are in rdi and rsi, or in x0 and x1. The end of x86-64's
 * is a jump, and not `ret`: of that the processor foretells that it leads back to the caller. */
#if defined(__x86_64__)
#define SAVED    8 /* words: rbp, rbx, r12 to r15, the address of return, and 0 above it */
#define AT_ENTRY 6
__asm__(".text\n"
        ".globl switch_stack\n"
        ".type switch_stack, @function\n"
        "switch_stack:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    popq %rcx\n"
        "    jmp *%rcx\n"
        ".size switch_stack, . - switch_stack\n");
#elif defined(__aarch64__)
#define SAVED    20 /* words: x19 to x28, x29 (frame), x30 (where to return), d8 to d15 */
#define AT_ENTRY 11
__asm__(".text\n"
        ".globl switch_stack\n"
        ".type switch_stack, %function\n"
        "switch_stack:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size switch_stack, . - switch_stack\n");
#else
#error "another processor: module.mk should have chosen switch_ucontext.c"
#endif

/* What a switch away from entry() would have left there, just before its first instruction. Zeros
 * for the frame and, on x86-64, above the address of return: a debugger's backtrace ends there. */
void *switch_prepare(char *stack, size_t size, void (*entry)(void))
{
    uintptr_t top = ((uintptr_t)stack + size) & ~(uintptr_t)15; /* both demand multiples of 16 */
    uintptr_t *saved = (uintptr_t *)top - SAVED;

    memset(saved, 0, SAVED * sizeof *saved);
    saved[AT_ENTRY] = (uintptr_t)entry;
    return saved;
}
