#include "16-coroutines/coroutine.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "16-coroutines/switch.h"

/*
 * The size is address space. The kernel gives it memory page by page, when a page is first written
 * to, and the page then stays with the stack. A function that needs more than STACK_SIZE writes
 * into the guard page below, which is not accessible, and the process ends with SIGSEGV. Without
 * the guard it would write into another coroutine's stack. An array larger than a page can step
 * over the guard, unless gcc's -fstack-clash-protection touches each page. In a trial a request
 * took 20 KiB at most: with -v, since the line of the log is made on this stack.
 *
 * Stack and guard are two mappings, of which Linux allows a process 65530 (vm.max_map_count): some
 * 32 000 connections. Threads have the same limit.
 */
#define STACK_SIZE (64 * 1024)

/* Stacks kept for the next coroutines, with their pages: that saves mmap(), mprotect(), munmap()
 * and the page faults. */
#define SPARES 64

/* It stands at the upper end of its own stack, which grows downwards. */
struct coroutine {
    void *at; /* where it goes on */
    int (*body)(void *arg);
    void *arg;
    int value; /* from coroutine_yield() to coroutine_resume(), or back */
    bool is_over;
    struct coroutine *next; /* among the spare ones */
};

static struct coroutine *running;
static void *resumer; /* where coroutine_resume() goes on */

static struct coroutine *spares;
static int nspares;

static size_t guard_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static char *stack_of(struct coroutine *co)
{
    return (char *)(co + 1) - STACK_SIZE;
}

static struct coroutine *map_stack(void)
{
    size_t size = guard_size() + STACK_SIZE;
    char *low = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

    if (low == MAP_FAILED)
        return NULL;
    if (mprotect(low, guard_size(), PROT_NONE) < 0) {
        munmap(low, size);
        return NULL;
    }
    return (struct coroutine *)(low + size) - 1;
}

/* The first function on a stack. It has no caller to return to. */
static void enter_body(void)
{
    struct coroutine *co = running;

    co->value = co->body(co->arg);
    co->is_over = true;
    switch_stack(&co->at, resumer);
    abort(); /* resumed although it was over */
}

struct coroutine *coroutine_new(int (*body)(void *arg), void *arg)
{
    struct coroutine *co = spares;

    if (co != NULL) {
        spares = co->next;
        nspares--;
    } else if ((co = map_stack()) == NULL) {
        return NULL;
    }
    *co = (struct coroutine){.body = body, .arg = arg};
    co->at = switch_prepare(stack_of(co), STACK_SIZE - sizeof *co, enter_body);
    return co;
}

void coroutine_free(struct coroutine *co)
{
    if (nspares < SPARES) {
        co->next = spares;
        spares = co;
        nspares++;
    } else {
        munmap(stack_of(co) - guard_size(), guard_size() + STACK_SIZE);
    }
}

int coroutine_resume(struct coroutine *co, int value)
{
    co->value = value;
    running = co;
    switch_stack(&resumer, co->at);
    return co->value;
}

int coroutine_yield(int value)
{
    struct coroutine *co = running; /* others run meanwhile */

    co->value = value;
    switch_stack(&co->at, resumer);
    return co->value;
}

bool coroutine_is_over(const struct coroutine *co)
{
    return co->is_over;
}
