/*
 * coroutine.h: functions that can stop in the middle and go on later, each on a stack of its own.
 * As with a thread, its local variables and its place in the program stay on that stack. Unlike a
 * thread, it runs only when it is resumed, and until it yields: the kernel does not know it, and
 * never interrupts one coroutine to run another. So no locks are needed. But when one makes a call
 * that blocks, or computes for long, all others wait.
 *
 * For one thread. A coroutine is resumed from the thread's own stack, not from another coroutine.
 */
#ifndef COROUTINE_H
#define COROUTINE_H

#include <stdbool.h>

struct coroutine;

/* A coroutine that will call body(arg) when it is first resumed. Returns NULL without memory. */
struct coroutine *coroutine_new(int (*body)(void *arg), void *arg);

/*
 * Lets it run until it yields, or until body() returns: then it is over, and must not be resumed
 * again. Returns what it gave to coroutine_yield(), or what body() returned. `value` is what its
 * coroutine_yield() returns (the first time there is none, and `value` is lost).
 */
int coroutine_resume(struct coroutine *co, int value);

/* In a coroutine: stops, and coroutine_resume() returns `value` to its caller. Returns when it is
 * resumed. Others may have run in between: errno is then theirs. */
int coroutine_yield(int value);

bool coroutine_is_over(const struct coroutine *co);

/* Only for a coroutine that is over or was never resumed. In any other a function has stopped in
 * the middle: what it holds, such as an open file, is freed when it returns, and not otherwise. */
void coroutine_free(struct coroutine *co);

#endif
