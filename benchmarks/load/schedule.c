/* Closed and open loop; see schedule.h. */
#include "schedule.h"

#include "clock.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What is further away than 2^62 ns (146 years) does not fit into the sum, and never comes. */
static uint64_t intended_at(const struct schedule *s, uint64_t i)
{
    double ns = (double)i * s->interval;

    return ns < 0x1p62 ? s->origin + (uint64_t)ns : CLOCK_NEVER;
}

/* How many intended times lie in the first `span` nanoseconds. */
static uint64_t count_within(const struct schedule *s, uint64_t span)
{
    uint64_t n = (uint64_t)((double)span / s->interval);
    while (intended_at(s, n) < s->origin + span)
        n++;
    return n;
}

void schedule_begin(struct schedule *s, const struct options *o, uint64_t now)
{
    *s = (struct schedule){.options = o,
                           .open = o->rate > 0,
                           .origin = now,
                           .measure_at = now + o->warm_up_ns,
                           .end_at = CLOCK_NEVER,
                           .give_up = CLOCK_NEVER,
                           .limit = UINT64_MAX};
    if (!s->open)
        return;
    s->interval = 1e9 / o->rate;
    if (o->requests) {
        s->limit = count_within(s, o->warm_up_ns) + o->requests;
        s->end_at = intended_at(s, s->limit);
    }
    if (o->seconds_ns) {
        s->limit = smaller(s->limit, count_within(s, o->warm_up_ns + o->seconds_ns));
        s->end_at = smaller(s->end_at, s->measure_at + o->seconds_ns);
        s->give_up = s->end_at + o->timeout_ns;
    }
}

void schedule_begin_measuring(struct schedule *s, uint64_t now, uint64_t in_flight)
{
    s->measuring = true;
    if (s->open)
        return;
    s->measure_at = now;
    s->taken = in_flight;
    if (s->options->requests)
        s->limit = s->options->requests;
    if (s->options->seconds_ns)
        s->end_at = s->give_up = now + s->options->seconds_ns;
}

bool schedule_take(struct schedule *s, uint64_t now, uint64_t *intended)
{
    if (s->taken >= s->limit)
        return false;
    *intended = s->open ? intended_at(s, s->taken) : now;
    if (*intended > now)
        return false;
    s->taken++;
    return true;
}

bool schedule_is_measured(const struct schedule *s, uint64_t intended)
{
    return s->open ? intended >= s->measure_at : s->measuring;
}

uint64_t schedule_waiting(const struct schedule *s, uint64_t now)
{
    if (!s->open || now < s->origin)
        return 0;
    uint64_t due = smaller(count_within(s, now - s->origin), s->limit);
    return due > s->taken ? due - s->taken : 0;
}

uint64_t schedule_unsent(const struct schedule *s, uint64_t now)
{
    uint64_t waiting = schedule_waiting(s, now);
    if (waiting == 0 || !s->measuring)
        return waiting;
    uint64_t warm_up = count_within(s, s->measure_at - s->origin);
    return waiting - (warm_up > s->taken ? warm_up - s->taken : 0);
}

uint64_t schedule_next(const struct schedule *s, uint64_t now, bool client_free)
{
    uint64_t next = now < s->end_at ? s->end_at : s->give_up;
    if (!s->measuring)
        next = s->measure_at;
    if (client_free && s->taken < s->limit)
        next = smaller(next, s->open ? intended_at(s, s->taken) : now);
    return next;
}

bool schedule_is_over(const struct schedule *s, uint64_t now, uint64_t in_flight)
{
    if (!s->measuring)
        return false;
    if (now >= s->give_up)
        return true;
    return s->taken >= s->limit && in_flight == 0 && (!s->open || now >= s->end_at);
}
