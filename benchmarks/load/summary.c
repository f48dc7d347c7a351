/* Derived figures; see summary.h. */
#include "summary.h"

static double per(double a, double b)
{
    return b > 0 ? a / b : 0;
}

struct summary summarize(const struct engine *e)
{
    const struct tally *t = e->measured;
    const struct outcome *o = &e->outcome;
    double seconds = (double)o->measured_ns / 1e9;
    double busy = (double)t->busy_ns / 1e9;
    struct summary s = {
        .seconds = seconds,
        .failed = t->finished - t->errors[FETCH_GOOD],
        .good_per_s = per((double)t->errors[FETCH_GOOD], seconds),
        .bytes_per_s = per((double)t->total_bytes, seconds),
        .cpu_share = per((double)(o->cpu_user_ns + o->cpu_system_ns), (double)o->measured_ns),
        .little_x = per((double)t->finished, seconds),
        .little_r = per(busy, (double)t->finished),
    };
    s.client_bound = s.cpu_share > 0.9;
    s.little_ratio = s.little_x * s.little_r / (double)e->options->connections;
    return s;
}

const char *summary_crowd_name(enum crowd_kind kind)
{
    static const char *const names[CROWD_KINDS] = {[CROWD_SLOW] = "slow",
                                                   [CROWD_SLOW_READ] = "slow_read",
                                                   [CROWD_HALF_DEAD] = "half_dead",
                                                   [CROWD_IDLE] = "idle"};
    return names[kind];
}
