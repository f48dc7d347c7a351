/*
 * switch.h: from one stack to another. What a stopped function needs in order to go on is on its
 * stack and in a few registers. These registers are put on the stack too, so that the address of
 * the stack's end is all that has to be remembered. One file for each way, chosen in module.mk:
 * - switch_asm.c: x86-64 and aarch64, some 20 instructions
 * - switch_ucontext.c: any processor where the C library has swapcontext(3): glibc has it, musl and
 *   dietlibc do not. It saves the mask of blocked signals as well, by a system call
 */
#ifndef SWITCH_H
#define SWITCH_H

#include <stddef.h>

/* Prepares the memory stack[0..size) so that the first switch to it calls entry(), which must not
 * return. Returns what to switch to. Cannot fail. */
void *switch_prepare(char *stack, size_t size, void (*entry)(void));

/* Goes on at `to`. Stores in *from what to switch to for coming back here: then it returns. */
void switch_stack(void **from, void *to);

#endif
