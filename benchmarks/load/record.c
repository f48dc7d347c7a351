/* From requests to tallies and samples; see record.h. */
#include "record.h"

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
    uint64_t possible = c->free_since > c->intended ? c->free_since : c->intended;

    keep_greatest(&tally->max_lateness_ns, now - c->intended);
    keep_greatest(&tally->max_own_lateness_ns, now - possible);
    keep_greatest(&tally->max_waiting, schedule_waiting(&e->schedule, now));
}
