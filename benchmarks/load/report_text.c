/* The result for people: http_load's summary first, in its words. */
#include "report.h"

#include <inttypes.h>

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
    const struct schedule *plan = &e->schedule;
    /* In an open loop the requests are those of the window in which they were due; the last replies
     * come after it, and the time until then is nobody's rate. */
    double offered =
        plan->open && plan->measuring && plan->end_at - plan->measure_at < o->measured_ns
            ? (double)(plan->end_at - plan->measure_at) / 1e9
            : seconds;
    struct summary s = {
        .seconds = seconds,
        .failed = t->finished - t->errors[FETCH_GOOD],
        .good_per_s = per((double)t->errors[FETCH_GOOD], offered),
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

/* ---- for people ------------------------------------------------------------------------------ */

static void put_quantile(FILE *out, const struct histogram *h, unsigned permille, const char *name)
{
    if (histogram_has_quantile(h, permille))
        fprintf(out, ", %g %s", (double)histogram_quantile(h, permille) / 1e6, name);
}

static void put_times(FILE *out, const char *name, const struct histogram *h)
{
    if (h->count == 0) {
        fprintf(out, "msecs/%s: none\n", name);
        return;
    }
    fprintf(out, "msecs/%s: %g mean, %g max, %g min", name, histogram_mean(h) / 1e6,
            (double)h->max / 1e6, (double)h->min / 1e6);
    put_quantile(out, h, 500, "median");
    put_quantile(out, h, 900, "p90");
    put_quantile(out, h, 990, "p99");
    put_quantile(out, h, 999, "p99.9");
    fputc('\n', out);
}

static void put_http_load(FILE *out, const struct engine *e, const struct summary *s)
{
    const struct tally *t = e->measured;
    uint64_t good = t->errors[FETCH_GOOD];

    fprintf(out, "%" PRIu64 " fetches, %" PRIu64 " max parallel, %g bytes, in %g seconds\n", good,
            e->options->connections, (double)t->body_bytes, s->seconds);
    fprintf(out, "%g mean bytes/fetch\n", good ? (double)t->body_bytes / (double)good : 0);
    fprintf(out, "%g fetches/sec, %g bytes/sec (heads included)\n", s->good_per_s, s->bytes_per_s);
    put_times(out, "connect", &t->connect);
    put_times(out, "first-response", &t->first_byte);
    put_times(out, "total", &t->total);
    if (e->schedule.open)
        put_times(out, "total-from-intended", &t->from_intended);
    fputs("HTTP response codes:\n", out);
    for (unsigned code = 0; code < STATUS_COUNT; code++)
        if (t->status[code])
            fprintf(out, "  code %u -- %" PRIu64 "\n", code, t->status[code]);
}

static void put_errors(FILE *out, const struct tally *t, uint64_t failed)
{
    fprintf(out, "errors: %" PRIu64, failed);
    for (enum fetch_error error = FETCH_GOOD + 1; error < FETCH_ERROR_COUNT; error++)
        if (t->errors[error])
            fprintf(out, ", %" PRIu64 " %s", t->errors[error], fetch_error_name(error));
    fputc('\n', out);
}

static void put_unfinished(FILE *out, const struct outcome *o)
{
    if (o->unfinished)
        fprintf(out, "unfinished: %" PRIu64 ", the oldest after %g s\n", o->unfinished,
                (double)o->oldest_unfinished_ns / 1e9);
    if (o->unsent)
        fprintf(out, "unsent: %" PRIu64 " were due, but no connection was ever free\n", o->unsent);
}

static void put_connections(FILE *out, const struct engine *e)
{
    const struct tally *t = e->measured;

    fprintf(out, "connections: %" PRIu64 " opened, %" PRIu64 " requests on old ones", t->opened,
            t->reused);
    if (t->closed_by_server)
        fprintf(out, ", %" PRIu64 " closed by the server (%" PRIu64 " requests sent again)",
                t->closed_by_server, t->resent);
    if (t->not_closed)
        fprintf(out, ", %" PRIu64 " never closed though announced", t->not_closed);
    if (t->unsolicited)
        fprintf(out, ", %" PRIu64 " with unsolicited bytes", t->unsolicited);
    fprintf(out, "\nfetches per client: %" PRIu64 " to %" PRIu64 "\n", e->outcome.least_good,
            e->outcome.most_good);
}

static void put_load(FILE *out, const struct engine *e, const struct summary *s)
{
    const struct tally *t = e->measured;

    fprintf(out, "hammer's own CPU: %.0f %% of one%s\n", 100 * s->cpu_share,
            s->client_bound ? "; CLIENT-BOUND: this measures hammer, not the server" : "");
    if (e->schedule.open)
        fprintf(out,
                "schedule: sent up to %g ms late, %g ms of it by hammer's own fault; "
                "queue up to %" PRIu64 "\n",
                (double)t->max_lateness_ns / 1e6, (double)t->max_own_lateness_ns / 1e6,
                t->max_waiting);
    else
        fprintf(out, "Little's law: %g requests/s x %g s = %.3f of %" PRIu64 " clients\n",
                s->little_x, s->little_r, s->little_ratio, e->options->connections);
}

static void put_crowd(FILE *out, const char *name, const struct crowd_report *r)
{
    if (r->wanted == 0)
        return;
    fprintf(out,
            "%s: %" PRIu64 " wanted, %" PRIu64 " established, %" PRIu64 " held at the end; %" PRIu64
            " served, %" PRIu64 " answered otherwise, %" PRIu64 " dropped (%" PRIu64
            " reset), %" PRIu64 " refused, %" PRIu64 " timed out, %" PRIu64 " reconnects",
            name, r->wanted, r->established, r->held, r->served, r->answered, r->dropped, r->reset,
            r->refused, r->timed_out, r->reconnects);
    if (r->first_loss_ns)
        fprintf(out, "; the first lost after %g s, the last after %g s",
                (double)r->first_loss_ns / 1e9, (double)r->last_loss_ns / 1e9);
    fputc('\n', out);
}

static void put_crowds(FILE *out, const struct engine *e)
{
    for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++)
        put_crowd(out, summary_crowd_name(kind), &e->crowd.reports[kind]);
    put_crowd(out, "herd", &e->herd.report);
}

void report_text(const struct engine *e, FILE *out)
{
    struct summary s = summarize(e);
    const struct tally *w = e->warm_up;

    if (options_hold_only(e->options)) {
        fprintf(out, "%s after %g s\n",
                herd_is_settled(&e->herd) ? "all decided" : "interrupted before all was decided,",
                (double)e->herd.settled_ns / 1e9);
        put_crowds(out, e);
        return;
    }
    if (e->outcome.signal)
        fputs("interrupted: the figures cover only what was done\n", out);
    put_http_load(out, e, &s);
    put_errors(out, e->measured, s.failed);
    put_unfinished(out, &e->outcome);
    put_connections(out, e);
    put_load(out, e, &s);
    if (e->options->warm_up_ns)
        fprintf(
            out, "warm-up: %g s, %" PRIu64 " fetches (%" PRIu64 " failed), not in the figures\n",
            (double)e->outcome.warm_up_ns / 1e9, w->finished, w->finished - w->errors[FETCH_GOOD]);
    put_crowds(out, e);
    fprintf(out, "seed: %" PRIu64 "\n", e->options->seed);
}
