/*
 * switch_ucontext.c: by the C library's functions. They keep the registers in a ucontext_t, about a
 * kilobyte, which is put on the stack that it belongs to.
 */
#include "16-coroutines/switch.h"

#include <stdint.h>
#include <ucontext.h>

#include "die.h"

void *switch_prepare(char *stack, size_t size, void (*entry)(void))
{
    uintptr_t top = ((uintptr_t)stack + size) & ~(uintptr_t)15;
    ucontext_t *context = (ucontext_t *)top - 1;

    if (getcontext(context) < 0) /* makecontext() changes what is there */
        die_errno("getcontext");
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = (size_t)((char *)context - stack);
    context->uc_link = NULL;
    makecontext(context, entry, 0);
    return context;
}

void switch_stack(void **from, void *to)
{
    ucontext_t here; /* lives until swapcontext() returns, and then it is no longer needed */

    *from = &here;
    if (swapcontext(&here, to) < 0)
        die_errno("swapcontext");
}
