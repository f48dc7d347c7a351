/*
 * coroutine.h: functions that can stop in the middle and go on later, each on a stack of its own.
 * As with a thread, what it was doing stays where it is: local variables, and the place in the
 * program. Unlike a thread, it runs only when it is resumed, and until it yields: the kernel knows
 * nothing of it and takes the processor from none. So no locks are needed; and when one calls
 * something that blocks, or computes for long, all others wait.
 *
 * For one thread. A coroutine is resumed from the thread's own stack, not from another coroutine.
 */
#ifndef COROUTINE_H
#define COROUTINE_H

#include <stdbool.h>

struct coroutine;

/* One that will call body(arg) when it is first resumed. Returns NULL without memory. */
struct coroutine *coroutine_new(int (*body)(void *arg), void *arg);

/*
 * Lets it run until it yields, or until body() returns: then it is over, and must not be resumed
 * again. Returns what it gave to coroutine_yield(), or what body() returned. `value` is what its
 * coroutine_yield() returns (the first time there is none, and `value` is lost).
 */
int coroutine_resume(struct coroutine *co, int value);

/* In a coroutine: gives `value` to the caller of coroutine_resume(), and stops until the next one.
 * errno is another's by then. */
int coroutine_yield(int value);

bool coroutine_is_over(const struct coroutine *co);

/* Frees one that is over or was never resumed. In any other there are functions in the middle: what
 * they hold, open files for instance, is freed when they return, and by nothing else. */
void coroutine_free(struct coroutine *co);

#endif
