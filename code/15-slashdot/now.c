/*
 * A request looks at the clock five times, for deadlines that are seconds away. The coarse clock is
 * that of the last tick, up to 10 ms old (CONFIG_HZ), and costs a fifth: it is read, not measured
 * (clock_gettime(2)).
 */
#include <time.h>

#include "05b-nonblocking/conn.h"

long long conn_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t); /* cannot fail: the clock exists, t is ours */
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}
