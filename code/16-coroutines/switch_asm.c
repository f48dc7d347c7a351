/*
 * switch_asm.c: by hand. To its caller switch_stack() is a function like others. A function must
 * not change some of the registers, and these few are saved. The others may be changed by any call,
 * so the compiler keeps nothing in them across this one.
 *
 * Not saved are the modes of floating-point arithmetic, which no server here changes. With a shadow
 * stack (CET of x86-64) the processor would end the program at the first return on the other stack;
 * a Linux program has one only if its C library was told to ask for it.
 */
#include "16-coroutines/switch.h"

#include <stdint.h>
#include <string.h>

#if defined(__APPLE__)
#error "written for ELF: names have no underscore in front"
#endif

/* Pushes the registers; *from = sp; sp = to; pops the registers that were pushed there, and goes on
 * where that stack was left. The arguments are in rdi and rsi, or in x0 and x1. On x86-64 it ends
 * with a jump in place of `ret`: the processor predicts that `ret` leads back to the caller, and
 * here that would be wrong every time. */
#if defined(__x86_64__)
#define SAVED    8 /* words: rbp, rbx, r12 to r15, the address of return, and 0 above it */
#define AT_ENTRY 6
/* region: x86 */
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
/* endregion: x86 */
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

/* Puts on the stack what switch_stack() would have left there, had entry() called it before its
 * first instruction. The frame and, on x86-64, the address of return of entry() are 0: a debugger's
 * backtrace ends there. */
void *switch_prepare(char *stack, size_t size, void (*entry)(void))
{
    uintptr_t top = ((uintptr_t)stack + size) & ~(uintptr_t)15; /* both processors want 16 */
    uintptr_t *saved = (uintptr_t *)top - SAVED;

    memset(saved, 0, SAVED * sizeof *saved);
    saved[AT_ENTRY] = (uintptr_t)entry;
    return saved;
}
