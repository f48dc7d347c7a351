/* From requests to tallies, samples and the outcome; see record.h. */
#include "record.h"

#include <sys/resource.h>

#include "clock.h"

struct tally *record_tally(struct engine *e, const struct client *c)
{
    return schedule_is_measured(&e->schedule, c->intended) ? e->measured : e->warm_up;
}

struct tally *record_tally_now(struct engine *e)
{
    return e->schedule.measuring ? e->measured : e->warm_up;
}

static void write_sample(struct engine *e, const struct client *c, enum fetch_error error,
                         uint64_t now)
{
    uint64_t origin = e->schedule.origin;
    struct sample sample = {
        .intended_ns = c->intended - origin,
        .start_ns = c->start - origin,
        .connect_ns = c->connected ? c->connected - c->start : 0,
        .first_byte_ns = c->first_byte ? c->first_byte - c->start : 0,
        .total_ns = now - c->start,
        .status = c->reply.in_body ? c->reply.response.status : 0,
        .bytes = c->reply.in_body ? c->reply.body.bytes : 0,
        .connection = (uint64_t)(c - e->clients),
        .url = (uint64_t)(c->url - e->urls->items),
        .error = error,
    };
    samples_write(e->samples, &sample);
}

static void record_times(struct engine *e, struct tally *tally, const struct client *c,
                         uint64_t now)
{
    if (c->connected)
        histogram_record(&tally->connect, c->connected - c->start);
    histogram_record(&tally->first_byte, c->first_byte - c->start);
    histogram_record(&tally->total, now - c->start);
    if (e->schedule.open)
        histogram_record(&tally->from_intended, now - c->intended);
}

void record_fetch(struct engine *e, struct client *c, enum fetch_error error, uint64_t now)
{
    struct tally *tally = record_tally(e, c);

    tally->finished++;
    tally->errors[error]++;
    tally->busy_ns += now - c->start;
    if (error == FETCH_GOOD) {
        tally->body_bytes += c->reply.body.bytes;
        record_times(e, tally, c, now);
    }
    if (tally == e->measured) {
        c->good += error == FETCH_GOOD;
        write_sample(e, c, error, now);
    }
}

enum fetch_error record_judge(struct engine *e, const struct client *c)
{
    int status = c->reply.response.status;
    int64_t length = (int64_t)c->reply.body.bytes;

    record_tally(e, c)->status[status]++;
    if (status < 200 || status > 299)
        return FETCH_STATUS;
    if (c->url->body_length < 0)
        c->url->body_length = length;
    return e->options->check && c->url->body_length != length ? FETCH_WRONG_LENGTH : FETCH_GOOD;
}

enum fetch_error record_reply_error(enum reply_result result)
{
    switch (result) {
    case REPLY_BAD_HEAD:
        return FETCH_BAD_HEAD;
    case REPLY_BAD_BODY:
        return FETCH_BAD_BODY;
    case REPLY_EXCESS:
        return FETCH_EXCESS;
    case REPLY_NO_MEMORY:
        return FETCH_NO_RESOURCES;
    case REPLY_SHORT:
    case REPLY_MORE:
    case REPLY_COMPLETE:
        break;
    }
    return FETCH_SHORT_REPLY;
}

static void keep_greatest(uint64_t *greatest, uint64_t value)
{
    if (value > *greatest)
        *greatest = value;
}

void record_lateness(struct engine *e, const struct client *c, uint64_t now)
{
    struct tally *tally = record_tally(e, c);
    /* Of the others that are free, the first has been so for the longest time. */
    const struct client *first = e->free_first;
    uint64_t free_since =
        first && first->free_since < c->free_since ? first->free_since : c->free_since;
    uint64_t possible = free_since > c->intended ? free_since : c->intended;

    keep_greatest(&tally->max_lateness_ns, now - c->intended);
    keep_greatest(&tally->max_own_lateness_ns, now - possible);
    keep_greatest(&tally->max_waiting, schedule_waiting(&e->schedule, now));
}

/* ---- the run as a whole ---------------------------------------------------------------------- */

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
    bool measuring = e->schedule.measuring; /* else the run has ended in the warm-up */

    o->least_good = UINT64_MAX;
    for (uint64_t i = 0; i < e->options->connections; i++) {
        const struct client *c = &e->clients[i];
        o->least_good = c->good < o->least_good ? c->good : o->least_good;
        o->most_good = c->good > o->most_good ? c->good : o->most_good;
        if (!client_in_flight(c) || (measuring && record_tally(e, c) == e->warm_up))
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
    o->unsent = schedule_unsent(s, now);
    o->warm_up_ns = (s->measuring ? s->measure_at : now) - s->origin;
    o->measured_ns = s->measuring ? now - s->measure_at : 0;
    o->cpu_user_ns = s->measuring ? user - o->cpu_user_ns : 0;
    o->cpu_system_ns = s->measuring ? system - o->cpu_system_ns : 0;
    crowd_note_held(&e->crowd);
    herd_finish(&e->herd);
    for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++)
        crowd_report_add(&e->crowd.reports[kind], &e->herd.crowd[kind]);
}
