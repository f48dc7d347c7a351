/* clock.h: the time for deadlines: milliseconds, of a clock that is never set. */
#ifndef CLOCK_H
#define CLOCK_H

long long now_ms(void);

/* From now on now_ms() is the time of the last tick, up to 10 ms ago (CONFIG_HZ), where the system
 * has such a clock: it is read, not measured, and costs a fifth (clock_gettime(2)). For those who
 * ask several times in a request, and whose deadlines are seconds away. */
void clock_coarse(void);

#endif
