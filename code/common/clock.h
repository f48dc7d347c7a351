/* clock.h: the time for deadlines, in milliseconds; setting the date does not change it. */
#ifndef CLOCK_H
#define CLOCK_H

long long now_ms(void);

/* From now on now_ms() is the time of the kernel's last tick, up to 10 ms ago (CONFIG_HZ), if the
 * system has such a clock: it costs a fifth of the exact one (clock_gettime(2)). For a server that
 * needs the time several times in a request and has deadlines of seconds. */
void clock_coarse(void);

#endif
