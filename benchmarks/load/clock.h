/* The one clock of hammer: monotonic nanoseconds. */
#ifndef HAMMER_CLOCK_H
#define HAMMER_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS   1000000ull
#define NS_PER_S    1000000000ull
#define CLOCK_NEVER UINT64_MAX

/* CLOCK_MONOTONIC cannot fail on Linux with a valid pointer, so there is nothing to check. */
static inline uint64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

#endif
