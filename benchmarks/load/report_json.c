/* The result as one JSON object; README.md describes its keys. */
#include "json.h"
#include "report.h"

enum { SCHEMA_VERSION = 1 };

static void put_or_null(struct json *j, const char *key, uint64_t value)
{
    if (value)
        json_unsigned(j, key, value);
    else
        json_null(j, key);
}

static void put_parameters(struct json *j, const struct engine *e)
{
    const struct options *o = e->options;

    json_open(j, "parameters", '{');
    json_string(j, "loop", o->rate > 0 ? "open" : "closed");
    json_unsigned(j, "connections", o->connections);
    put_or_null(j, "requests", o->requests);
    if (o->seconds_ns)
        json_number(j, "seconds", (double)o->seconds_ns / 1e9);
    else
        json_null(j, "seconds");
    json_number(j, "warm_up_s", (double)o->warm_up_ns / 1e9);
    if (o->rate > 0)
        json_number(j, "rate", o->rate);
    else
        json_null(j, "rate");
    json_number(j, "timeout_s", (double)o->timeout_ns / 1e9);
    json_bool(j, "keep_alive", o->keep_alive);
    json_string(j, "method", o->head ? "HEAD" : "GET");
    json_bool(j, "quickack", o->quickack);
    json_bool(j, "check", o->check);
    json_unsigned(j, "seed", o->seed);
    json_unsigned(j, "urls", e->urls->count);
    json_string(j, "first_url", e->urls->first);
    json_unsigned(j, "sources", o->sources.count);
    for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++)
        json_unsigned(j, summary_crowd_name(kind), o->wanted[kind]);
    json_unsigned(j, "herd", o->herd);
    json_number(j, "drip_ms", (double)o->drip_ns / 1e6);
    if (o->ramp > 0)
        json_number(j, "ramp", o->ramp);
    else
        json_null(j, "ramp");
    json_bool(j, "samples", o->samples_path != NULL);
    json_close(j, '}');
}

static void put_errors(struct json *j, const struct tally *t)
{
    json_open(j, "errors", '{');
    for (enum fetch_error error = FETCH_GOOD + 1; error < FETCH_ERROR_COUNT; error++)
        json_unsigned(j, fetch_error_name(error), t->errors[error]);
    json_close(j, '}');
}

static void put_status(struct json *j, const struct tally *t)
{
    char key[8];

    json_open(j, "status", '{');
    for (unsigned hundreds = 1; hundreds <= 5; hundreds++) {
        snprintf(key, sizeof key, "%uxx", hundreds);
        json_unsigned(j, key, tally_status_class(t, hundreds));
    }
    json_close(j, '}');
    json_open(j, "codes", '{');
    for (unsigned code = 0; code < STATUS_COUNT; code++) {
        snprintf(key, sizeof key, "%u", code);
        if (t->status[code])
            json_unsigned(j, key, t->status[code]);
    }
    json_close(j, '}');
}

static void put_quantile(struct json *j, const char *key, const struct histogram *h,
                         unsigned permille)
{
    if (histogram_has_quantile(h, permille))
        json_unsigned(j, key, histogram_quantile(h, permille));
    else
        json_null(j, key);
}

static void put_buckets(struct json *j, const struct histogram *h)
{
    json_open(j, "histogram", '[');
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (!h->buckets[i])
            continue;
        json_open(j, NULL, '[');
        json_unsigned(j, NULL, histogram_lower(i));
        json_unsigned(j, NULL, h->buckets[i]);
        json_close(j, ']');
    }
    json_close(j, ']');
}

static void put_times(struct json *j, const char *key, const struct histogram *h)
{
    json_open(j, key, '{');
    json_unsigned(j, "count", h->count);
    if (h->count > 0) {
        json_unsigned(j, "min", h->min);
        json_unsigned(j, "max", h->max);
        json_number(j, "mean", histogram_mean(h));
    } else {
        json_null(j, "min");
        json_null(j, "max");
        json_null(j, "mean");
    }
    put_quantile(j, "median", h, 500);
    put_quantile(j, "p90", h, 900);
    put_quantile(j, "p99", h, 990);
    put_quantile(j, "p999", h, 999);
    put_buckets(j, h);
    json_close(j, '}');
}

static void put_connections(struct json *j, const struct engine *e)
{
    const struct tally *t = e->measured;

    json_open(j, "connections", '{');
    json_unsigned(j, "opened", t->opened);
    json_unsigned(j, "reused", t->reused);
    json_unsigned(j, "closed_by_server", t->closed_by_server);
    json_unsigned(j, "resent", t->resent);
    json_unsigned(j, "not_closed", t->not_closed);
    json_unsigned(j, "unsolicited", t->unsolicited);
    json_close(j, '}');
    json_open(j, "fairness", '{');
    json_unsigned(j, "min", e->outcome.least_good);
    json_unsigned(j, "max", e->outcome.most_good);
    json_close(j, '}');
}

static void put_load(struct json *j, const struct engine *e, const struct summary *s)
{
    const struct tally *t = e->measured;

    json_open(j, "cpu", '{');
    json_unsigned(j, "user_ns", e->outcome.cpu_user_ns);
    json_unsigned(j, "system_ns", e->outcome.cpu_system_ns);
    json_close(j, '}');
    json_number(j, "cpu_share", s->cpu_share);
    json_bool(j, "client_bound", s->client_bound);
    if (e->schedule.open) {
        json_null(j, "little");
        json_open(j, "schedule", '{');
        json_unsigned(j, "max_lateness_ns", t->max_lateness_ns);
        json_unsigned(j, "max_own_lateness_ns", t->max_own_lateness_ns);
        json_unsigned(j, "max_waiting", t->max_waiting);
        json_close(j, '}');
        return;
    }
    json_open(j, "little", '{');
    json_unsigned(j, "n", e->options->connections);
    json_number(j, "x", s->little_x);
    json_number(j, "r", s->little_r);
    json_number(j, "ratio", s->little_ratio);
    json_close(j, '}');
    json_null(j, "schedule");
}

static void put_warm_up(struct json *j, const struct engine *e)
{
    const struct tally *t = e->warm_up;

    if (e->options->warm_up_ns == 0) {
        json_null(j, "warm_up");
        return;
    }
    json_open(j, "warm_up", '{');
    json_number(j, "seconds", (double)e->outcome.warm_up_ns / 1e9);
    json_unsigned(j, "requests", t->finished);
    put_errors(j, t);
    put_quantile(j, "median_total", &t->total, 500);
    json_close(j, '}');
}

static void put_loss(struct json *j, const char *key, uint64_t ns)
{
    if (ns)
        json_number(j, key, (double)ns / 1e9);
    else
        json_null(j, key);
}

static void put_crowd(struct json *j, const char *key, const struct crowd_report *r)
{
    json_open(j, key, '{');
    json_unsigned(j, "wanted", r->wanted);
    json_unsigned(j, "established", r->established);
    json_unsigned(j, "refused", r->refused);
    json_unsigned(j, "timed_out", r->timed_out);
    json_unsigned(j, "served", r->served);
    json_unsigned(j, "answered", r->answered);
    json_unsigned(j, "dropped", r->dropped);
    json_unsigned(j, "reset", r->reset);
    json_unsigned(j, "reconnects", r->reconnects);
    json_unsigned(j, "held", r->held);
    put_loss(j, "first_loss_s", r->first_loss_ns);
    put_loss(j, "last_loss_s", r->last_loss_ns);
    json_close(j, '}');
}

static void put_requests(struct json *j, const struct engine *e, const struct summary *s)
{
    const struct tally *t = e->measured;

    json_bool(j, "interrupted", e->outcome.signal != 0);
    json_number(j, "seconds", s->seconds);
    json_unsigned(j, "requests", t->finished);
    json_unsigned(j, "good", t->errors[FETCH_GOOD]);
    json_unsigned(j, "failed", s->failed);
    json_unsigned(j, "unfinished", e->outcome.unfinished);
    json_number(j, "oldest_unfinished_s", (double)e->outcome.oldest_unfinished_ns / 1e9);
    json_unsigned(j, "unsent", e->outcome.unsent);
    put_errors(j, t);
    put_status(j, t);
    json_open(j, "bytes", '{');
    json_unsigned(j, "body", t->body_bytes);
    json_unsigned(j, "total", t->total_bytes);
    json_close(j, '}');
    json_number(j, "requests_per_s", s->good_per_s);
    json_number(j, "bytes_per_s", s->bytes_per_s);
}

static void put_fetches(struct json *j, const struct engine *e)
{
    struct summary s = summarize(e);

    put_requests(j, e, &s);
    put_times(j, "connect", &e->measured->connect);
    put_times(j, "first_byte", &e->measured->first_byte);
    put_times(j, "total", &e->measured->total);
    if (e->schedule.open)
        put_times(j, "total_from_intended", &e->measured->from_intended);
    else
        json_null(j, "total_from_intended");
    put_connections(j, e);
    put_load(j, e, &s);
    put_warm_up(j, e);
}

/* Herd and crowd of a run without a load. */
static void put_held(struct json *j, const struct engine *e)
{
    struct crowd_report all = {0};

    for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++)
        crowd_report_add(&all, &e->crowd.reports[kind]);
    if (herd_is_settled(&e->herd))
        json_number(j, "settled_s", (double)e->herd.settled_ns / 1e9);
    else
        json_null(j, "settled_s"); /* a signal came first */
    put_crowd(j, "crowd", &all);
}

void report_json(const struct engine *e, FILE *out)
{
    struct json json = {.out = out};
    struct json *j = &json;

    json_open(j, NULL, '{');
    json_unsigned(j, "schema", SCHEMA_VERSION);
    put_parameters(j, e);
    if (options_hold_only(e->options))
        put_held(j, e);
    else
        put_fetches(j, e);
    for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++)
        put_crowd(j, summary_crowd_name(kind), &e->crowd.reports[kind]);
    put_crowd(j, "herd", &e->herd.report);
    json_close(j, '}');
    putc('\n', out);
}
