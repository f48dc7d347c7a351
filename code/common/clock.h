/* clock.h: the time for deadlines, in milliseconds; setting the date does not change it. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdbool.h>

long long now_ms(void);

/*
 * Whether a pass of an event loop was stalled: it began then, with a wait of at most wait_ms (-1:
 * without limit), and has taken STALL_MS longer. The process was stopped (Ctrl-Z, a debugger),
 * swapped out, or waited for a disk. Clients may have read their replies meanwhile, and a wait
 * reports only some of them: 256, with libowfat 100, a signal one. So those whose time is up, and
 * whose replies wait for room, have the time of a step once more; once, or a client could stay.
 */
#define STALL_MS 250
bool was_stalled(long long began, int wait_ms);

/* From now on now_ms() is the time of the kernel's last tick, up to 10 ms ago (CONFIG_HZ), if the
 * system has such a clock: it costs a fifth of the exact one (clock_gettime(2)). For a server that
 * needs the time several times in a request and has deadlines of seconds. */
void clock_coarse(void);

#endif
