/* Statistics as JSON; see statistics.h. */
#include "statistics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../load/json.h"

#define NS_PER_S    1e9
#define NS_PER_MS   1e6
#define FIRST_WIDTH 100000000u /* 0.1 s */

void course_begin(struct course *c, uint64_t now)
{
    *c = (struct course){.begun = now, .noted = now, .width = FIRST_WIDTH};
}

static void widen(struct course *c)
{
    for (size_t i = 0; i < COURSE_BINS / 2; i++) {
        c->depth_ns[i] = c->depth_ns[2 * i] + c->depth_ns[2 * i + 1];
        c->busy_ns[i] = c->busy_ns[2 * i] + c->busy_ns[2 * i + 1];
    }
    memset(c->depth_ns + COURSE_BINS / 2, 0, sizeof c->depth_ns / 2);
    memset(c->busy_ns + COURSE_BINS / 2, 0, sizeof c->busy_ns / 2);
    c->width *= 2;
}

/* What was added since the last note is spread evenly over the bins between. */
void course_note(struct course *c, uint64_t now, double depth_ns, double busy_ns)
{
    if (now <= c->noted)
        return;
    double span = (double)(now - c->noted);
    while ((now - c->begun) / c->width >= COURSE_BINS)
        widen(c);
    for (uint64_t from = c->noted; from < now;) {
        uint64_t bin = (from - c->begun) / c->width, end = c->begun + (bin + 1) * c->width;
        if (end > now)
            end = now;
        double share = (double)(end - from) / span;
        c->depth_ns[bin] += share * (depth_ns - c->depth_so_far);
        c->busy_ns[bin] += share * (busy_ns - c->busy_so_far);
        from = end;
    }
    c->depth_so_far = depth_ns;
    c->busy_so_far = busy_ns;
    c->noted = now;
}

static void write_course(struct json *j, const struct course *c, uint64_t spindles)
{
    json_open(j, "course", '[');
    for (uint64_t i = 0; c->begun + i * c->width < c->noted; i++) {
        uint64_t from = c->begun + i * c->width, end = from + c->width;
        if (end > c->noted)
            end = c->noted;
        double span = (double)(end - from);
        json_open(j, NULL, '[');
        json_number(j, NULL, (double)(end - c->begun) / NS_PER_S);
        json_number(j, NULL, c->depth_ns[i] / span);
        json_number(j, NULL, c->busy_ns[i] / span / (double)spindles);
        json_close(j, ']');
    }
    json_close(j, ']');
}

static void write_disk(struct json *j, const struct report *r)
{
    const struct counts *c = &r->counts;
    double ns = r->seconds > 0 ? r->seconds * NS_PER_S : 1, busy = 0;
    for (size_t i = 0; i < r->spindles; i++)
        busy += (double)c->busy_ns[i];
    json_unsigned(j, "disk_reads", c->requests);
    json_unsigned(j, "disk_bytes", c->bytes);
    json_unsigned(j, "seeks", c->seeks);
    json_unsigned(j, "continuations", c->continuations);
    json_number(j, "head_travel", c->strokes);
    json_number(j, "queue_depth", c->depth_ns / ns);
    json_unsigned(j, "queue_deepest", c->deepest);
    json_number(j, "utilisation", busy / ns / (double)r->spindles);
    json_open(j, "spindle_utilisation", '[');
    for (size_t i = 0; i < r->spindles; i++)
        json_number(j, NULL, (double)c->busy_ns[i] / ns);
    json_close(j, ']');
}

static void write_report(FILE *out, const struct report *r)
{
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    json_number(&j, "seconds", r->seconds);
    json_unsigned(&j, "reads", r->asked.reads);
    json_unsigned(&j, "bytes", r->asked.bytes);
    json_unsigned(&j, "lookups", r->asked.lookups);
    json_unsigned(&j, "opens", r->asked.opens);
    json_unsigned(&j, "getattrs", r->asked.getattrs);
    write_disk(&j, r);
    json_unsigned(&j, "cache_hits", r->cache_hits);
    json_unsigned(&j, "cache_misses", r->cache_misses);
    double replies = r->asked.wakes ? (double)r->asked.wakes : 1;
    json_number(&j, "late_ms", r->asked.late_ns / replies / NS_PER_MS);
    json_number(&j, "latest_ms", r->asked.latest_ns / NS_PER_MS);
    write_course(&j, r->course, r->spindles);
    json_close(&j, '}');
    putc('\n', out);
}

char *report_text(const struct report *r)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    write_report(out, r);
    bool bad = ferror(out) != 0;
    if (fclose(out) == EOF || bad) {
        free(text);
        return NULL;
    }
    return text;
}
