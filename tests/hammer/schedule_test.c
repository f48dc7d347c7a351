/* Unit tests of the schedule: what is taken when, what counts, when it is over. */
#include "schedule.h"

#include "clock.h"
#include "tap.h"

static const uint64_t T = 5 * NS_PER_S; /* where the runs begin */

/* How many requests the schedule would hand out at this time. */
static uint64_t take_all(struct schedule *s, uint64_t now)
{
    uint64_t n = 0;
    uint64_t intended;
    while (n < 1000000 && schedule_take(s, now, &intended))
        n++;
    return n;
}

static void test_closed_by_number(void)
{
    struct options o = {.connections = 3, .requests = 10};
    struct schedule s;
    uint64_t intended = 0;

    schedule_begin(&s, &o, T);
    schedule_begin_measuring(&s, T, 0);
    OK(schedule_take(&s, T + 7, &intended) && intended == T + 7);
    OK(take_all(&s, T + 8) == 9);
    OK(!schedule_is_over(&s, T + 9, 3));
    OK(schedule_is_over(&s, T + 9, 0));
    OK(schedule_next(&s, T + 9, true) == CLOCK_NEVER);
    OK(schedule_waiting(&s, T + 9) == 0);
}

static void test_closed_by_time(void)
{
    struct options o = {.connections = 3, .seconds_ns = NS_PER_S, .warm_up_ns = 100};
    struct schedule s;
    uint64_t intended;

    schedule_begin(&s, &o, T);
    OK(schedule_next(&s, T, false) == T + 100);
    OK(schedule_next(&s, T, true) == T);
    OK(schedule_take(&s, T, &intended));
    OK(!schedule_is_measured(&s, T) && !schedule_is_over(&s, T + 2 * NS_PER_S, 0));
    schedule_begin_measuring(&s, T + 150, 1);
    OK(schedule_is_measured(&s, T));
    OK(!schedule_is_over(&s, T + 149 + NS_PER_S, 0));
    OK(schedule_is_over(&s, T + 150 + NS_PER_S, 3));
    OK(schedule_next(&s, T + 200, false) == T + 150 + NS_PER_S);
}

/* Requests in flight when the warm-up ends are the first of the measured ones. */
static void test_closed_warm_up_then_number(void)
{
    struct options o = {.connections = 3, .requests = 10, .warm_up_ns = 100};
    struct schedule s;

    schedule_begin(&s, &o, T);
    OK(take_all(&s, T) == 1000000);
    schedule_begin_measuring(&s, T + 100, 3);
    OK(take_all(&s, T + 100) == 7);
}

static void test_open(void)
{
    struct options o = {.connections = 1,
                        .rate = 1000,
                        .seconds_ns = NS_PER_S,
                        .warm_up_ns = NS_PER_S / 2,
                        .timeout_ns = 10};
    struct schedule s;
    uint64_t intended = 0;

    schedule_begin(&s, &o, T);
    OK(schedule_next(&s, T, true) == T);
    OK(schedule_take(&s, T, &intended) && intended == T);
    OK(!schedule_take(&s, T + NS_PER_MS - 1, &intended));
    OK(schedule_next(&s, T + 1, true) == T + NS_PER_MS);
    OK(schedule_next(&s, T + 1, false) == s.measure_at);
    OK(schedule_waiting(&s, T + 10 * NS_PER_MS + 1) == 10);
    OK(take_all(&s, T + 10 * NS_PER_MS) == 10);
    OK(schedule_waiting(&s, T + 10 * NS_PER_MS + 1) == 0);
    OK(!schedule_is_measured(&s, T + NS_PER_S / 2 - 1));
    OK(schedule_is_measured(&s, T + NS_PER_S / 2));
    schedule_begin_measuring(&s, T + NS_PER_S / 2, 1);
    OK(schedule_unsent(&s, T + 600 * NS_PER_MS) == 100);
    OK(take_all(&s, T + 100 * NS_PER_S) == 1500 - 11);
    OK(!schedule_is_over(&s, s.end_at - 1, 0));
    OK(schedule_is_over(&s, s.end_at, 0));
    OK(!schedule_is_over(&s, s.end_at + 9, 1));
    OK(schedule_is_over(&s, s.end_at + 10, 1));
    OK(schedule_next(&s, s.end_at, true) == s.end_at + 10);
}

static void test_open_by_number(void)
{
    struct options o = {.connections = 1, .rate = 3, .requests = 7, .warm_up_ns = NS_PER_S};
    struct schedule s;

    schedule_begin(&s, &o, T);
    schedule_begin_measuring(&s, T + NS_PER_S, 0);
    OK(take_all(&s, T + 1000 * NS_PER_S) == 3 + 7);
    OK(!schedule_is_over(&s, T + 1000 * NS_PER_S, 1));
    OK(schedule_is_over(&s, T + 1000 * NS_PER_S, 0));
}

/* A number that is never reached: the last one would be due after 3000 years. */
static void test_open_by_a_vast_number(void)
{
    struct options o = {.rate = 10, .requests = 1000000000000, .seconds_ns = NS_PER_S};
    struct schedule s;

    schedule_begin(&s, &o, T);
    OK(s.limit == 10 && s.end_at == T + NS_PER_S);
}

int main(void)
{
    test_closed_by_number();
    test_closed_by_time();
    test_closed_warm_up_then_number();
    test_open();
    test_open_by_number();
    test_open_by_a_vast_number();
    return tap_end();
}
