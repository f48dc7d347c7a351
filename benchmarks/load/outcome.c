/* The end of a run; see outcome.h. */
#include "outcome.h"

#include <sys/resource.h>

#include "clock.h"
#include "engine.h"

static uint64_t nanoseconds(struct timeval t)
{
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_usec * 1000;
}

/* getrusage cannot fail for RUSAGE_SELF. */
static void read_cpu(uint64_t *user, uint64_t *system)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    *user = nanoseconds(usage.ru_utime);
    *system = nanoseconds(usage.ru_stime);
}

/* They hold the CPU time at the beginning until outcome_end takes the difference. */
void outcome_begin(struct outcome *o)
{
    read_cpu(&o->cpu_user_ns, &o->cpu_system_ns);
}

static void note_clients(struct engine *e, uint64_t now)
{
    struct outcome *o = &e->outcome;

    o->least_good = UINT64_MAX;
    for (uint64_t i = 0; i < e->options->connections; i++) {
        const struct client *c = &e->clients[i];
        o->least_good = c->good < o->least_good ? c->good : o->least_good;
        o->most_good = c->good > o->most_good ? c->good : o->most_good;
        if (!client_in_flight(c))
            continue;
        o->unfinished++;
        if (now - c->intended > o->oldest_unfinished_ns)
            o->oldest_unfinished_ns = now - c->intended;
    }
}

void outcome_end(struct engine *e)
{
    struct outcome *o = &e->outcome;
    const struct schedule *s = &e->schedule;
    uint64_t now = clock_now();
    uint64_t user;
    uint64_t system;

    read_cpu(&user, &system);
    note_clients(e, now);
    o->unsent = schedule_waiting(s, now);
    o->warm_up_ns = (s->measuring ? s->measure_at : now) - s->origin;
    o->measured_ns = s->measuring ? now - s->measure_at : 0;
    o->cpu_user_ns = s->measuring ? user - o->cpu_user_ns : 0;
    o->cpu_system_ns = s->measuring ? system - o->cpu_system_ns : 0;
    crowd_note_held(&e->crowd);
    herd_finish(&e->herd);
    for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++)
        crowd_report_add(&e->crowd.reports[kind], &e->herd.crowd[kind]);
}
