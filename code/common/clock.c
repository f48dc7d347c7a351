#include "clock.h"

#include <time.h>

static clockid_t id = CLOCK_MONOTONIC;

long long now_ms(void)
{
    struct timespec t;

    clock_gettime(id, &t); /* cannot fail: the clock exists, t is ours */
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

bool was_stalled(long long began, int wait_ms)
{
    return wait_ms >= 0 && now_ms() - began > wait_ms + STALL_MS;
}

void clock_coarse(void)
{
#ifdef CLOCK_MONOTONIC_COARSE
    id = CLOCK_MONOTONIC_COARSE;
#endif
}
