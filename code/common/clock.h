/* clock.h: the time for deadlines, in milliseconds; setting the date does not change it. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdbool.h>

long long now_ms(void);

/* Whether a pass of an event loop that began then, with a wait of at most wait_ms (-1: without
 * limit), has taken STALL_MS longer: the process was stopped (Ctrl-Z), or waited for a disk. One
 * wait reports only some of the clients that have read meanwhile: 256, a signal one. So replies
 * that wait for room have their time once more; only once, or a client could stay. */
#define STALL_MS 250
bool was_stalled(long long began, int wait_ms);

/* From now on now_ms() is the time of the kernel's last tick, up to 10 ms ago (CONFIG_HZ), if the
 * system has such a clock: it costs a fifth of the exact one (clock_gettime(2)). For a server that
 * needs the time several times in a request and has deadlines of seconds. */
void clock_coarse(void);

#endif
