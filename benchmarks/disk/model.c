/* The disk as a model; see model.h. */
#include "model.h"

#include <math.h>
#include <string.h>

#define NS_PER_MS      1e6
#define NS_PER_S       1e9
#define AVERAGE_STROKE (1.0 / 3.0)
/* Linux's deadline scheduler does as many before it looks again at who has waited too long. */
#define BATCH 16

struct geometry default_geometry(void)
{
    return (struct geometry){.spindles = 2,
                             .rpm = 7200,
                             .track_ms = 1.0,
                             .average_ms = 8.5,
                             .full_ms = 18,
                             .bytes_per_s = 30e6,
                             .capacity = 160000000000ull,
                             .scheduler = FIFO,
                             .expire_ms = 500};
}

const char *geometry_problem(const struct geometry *g)
{
    if (g->spindles < 1 || g->spindles > MAX_SPINDLES)
        return "there are from 1 to 16 spindles";
    if (g->track_ms > g->average_ms || g->average_ms > g->full_ms)
        return "a seek takes longer the farther it goes: TRACK <= AVERAGE <= FULL";
    if (!(g->rpm > 0) || !(g->bytes_per_s > 0) || g->track_ms < 0 || g->capacity == 0)
        return "a disk turns, transfers and holds something";
    return NULL;
}

void disk_init(struct disk *disk, const struct geometry *geometry)
{
    memset(disk, 0, sizeof *disk);
    disk->geometry = *geometry;
}

/* ---- what a request costs ---- */

double half_turn_ns(const struct geometry *g)
{
    return 60 * NS_PER_S / g->rpm / 2;
}

double transfer_ns(const struct geometry *g, uint64_t bytes)
{
    return (double)bytes / g->bytes_per_s * NS_PER_S;
}

double seek_ns(const struct geometry *g, uint64_t distance)
{
    /* Within a track there is nowhere to go. */
    if (transfer_ns(g, distance) < 2 * half_turn_ns(g))
        return 0;
    double stroke = (double)distance / (double)g->capacity;
    double ms;
    if (stroke <= AVERAGE_STROKE)
        ms = g->track_ms + (g->average_ms - g->track_ms) * sqrt(stroke / AVERAGE_STROKE);
    else
        ms = g->average_ms +
             (g->full_ms - g->average_ms) * (stroke - AVERAGE_STROKE) / (1 - AVERAGE_STROKE);
    return ms * NS_PER_MS;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* The time until `start` is under this head; *seeks tells whether it takes more than waiting. */
static double position_ns(const struct geometry *g, uint64_t head, uint64_t start, bool *seeks)
{
    uint64_t far = distance(head, start);
    double moved = seek_ns(g, far) + half_turn_ns(g);
    double passed = transfer_ns(g, far);
    *seeks = start < head || passed > moved;
    return *seeks ? moved : passed;
}

/* ---- the queue ---- */

static void append(struct disk *d, struct request *r)
{
    r->next = NULL;
    r->previous = d->newest;
    if (d->newest)
        d->newest->next = r;
    else
        d->oldest = r;
    d->newest = r;
}

static void take_out(struct disk *d, struct request *r)
{
    if (r->previous)
        r->previous->next = r->next;
    else
        d->oldest = r->next;
    if (r->next)
        r->next->previous = r->previous;
    else
        d->newest = r->previous;
}

/*
 * Who goes on where a busy spindle will end is left to that one: the other would have to seek
 * there (Linux's RAID 1 keeps a sequential reader on its disk, too). ends[] is where the spindles
 * will be when what is reserved for them is done.
 */
struct reservations {
    uint64_t ends[MAX_SPINDLES];
    size_t count;
};

static struct reservations reservations_of(const struct disk *d)
{
    struct reservations kept = {.count = 0};
    for (size_t i = 0; i < d->geometry.spindles; i++) {
        const struct request *r = d->spindle[i].current;
        if (r)
            kept.ends[kept.count++] = r->start + r->length;
    }
    return kept;
}

static bool reserved(struct reservations *kept, const struct request *r)
{
    for (size_t i = 0; i < kept->count; i++) {
        if (kept->ends[i] == r->start) {
            kept->ends[i] = r->start + r->length;
            return true;
        }
    }
    return false;
}

static struct request *oldest_free(const struct disk *d)
{
    struct reservations kept = reservations_of(d);
    for (struct request *r = d->oldest; r; r = r->next)
        if (!reserved(&kept, r))
            return r;
    return NULL;
}

/* The next one up from this head; beyond the last the sweep begins anew at the lowest. */
static struct request *next_in_sweep(const struct disk *d, uint64_t head)
{
    struct reservations kept = reservations_of(d);
    struct request *above = NULL, *lowest = NULL;
    for (struct request *r = d->oldest; r; r = r->next) {
        if (reserved(&kept, r))
            continue;
        if (!lowest || r->start < lowest->start)
            lowest = r;
        if (r->start >= head && (!above || r->start < above->start))
            above = r;
    }
    return above ? above : lowest;
}

static struct request *choose_for(struct disk *d, struct spindle *s, uint64_t now)
{
    struct request *oldest = oldest_free(d);
    const struct geometry *g = &d->geometry;
    if (g->scheduler == FIFO || !oldest)
        return oldest;
    double expires = (double)oldest->arrived + g->expire_ms * NS_PER_MS;
    if (g->expire_ms > 0 && s->since_oldest >= BATCH && (double)now > expires) {
        s->since_oldest = 0;
        return oldest;
    }
    s->since_oldest++;
    return next_in_sweep(d, s->head);
}

/* ---- time goes by ---- */

/* A caller may be late, so that times come out of order; none is counted twice. */
static void count_until(struct disk *d, uint64_t now)
{
    if (now <= d->counted_to)
        return;
    d->counts.depth_ns += (double)d->depth * (double)(now - d->counted_to);
    d->counted_to = now;
}

static void begin(struct disk *d, struct spindle *s, struct request *r, uint64_t now)
{
    bool seeks;
    const struct geometry *g = &d->geometry;
    double ns = position_ns(g, s->head, r->start, &seeks) + transfer_ns(g, r->length);

    take_out(d, r);
    d->counts.requests++;
    d->counts.bytes += r->length;
    if (seeks)
        d->counts.seeks++;
    else
        d->counts.continuations++;
    d->counts.strokes += (double)distance(s->head, r->start) / (double)g->capacity;
    s->head = r->start + r->length;
    s->current = r;
    /* A caller that is late with one spindle has another one's time behind it. */
    if (now < s->finish)
        now = s->finish;
    s->start = r->arrived > now ? r->arrived : now;
    s->finish = s->start + (uint64_t)llround(ns);
}

/* Of the idle ones that whose arm is there first; NULL if all are busy. *idle: how many are not. */
static struct spindle *nearest_idle(struct disk *d, const struct request *r, size_t *idle)
{
    struct spindle *best = NULL;
    double least = INFINITY;
    *idle = 0;
    for (size_t i = 0; i < d->geometry.spindles; i++) {
        struct spindle *s = &d->spindle[i];
        bool seeks;
        if (s->current)
            continue;
        double ns = position_ns(&d->geometry, s->head, r->start, &seeks);
        ++*idle;
        if (ns < least) {
            least = ns;
            best = s;
        }
    }
    return best;
}

static void dispatch(struct disk *d, uint64_t now)
{
    struct request *r;
    while ((r = oldest_free(d)) != NULL) {
        size_t idle;
        struct spindle *s = nearest_idle(d, r, &idle);
        if (!s)
            return;
        if (idle == 1)
            r = choose_for(d, s, now);
        begin(d, s, r, now);
    }
}

void disk_submit(struct disk *d, struct request *r, uint64_t now)
{
    count_until(d, now);
    r->arrived = now;
    append(d, r);
    if (++d->depth > d->counts.deepest)
        d->counts.deepest = d->depth;
    dispatch(d, now);
}

/* The part of this service that lies after the last reset. */
static uint64_t busy_ns(const struct disk *d, const struct spindle *s, uint64_t until)
{
    uint64_t from = s->start > d->reset_at ? s->start : d->reset_at;
    return until > from ? until - from : 0;
}

struct request *disk_finish(struct disk *d, size_t spindle)
{
    struct spindle *s = &d->spindle[spindle];
    struct request *done = s->current;

    count_until(d, s->finish);
    d->depth--;
    d->counts.busy_ns[spindle] += busy_ns(d, s, s->finish);
    s->current = NULL;
    dispatch(d, s->finish);
    return done;
}

struct counts disk_counts(struct disk *d, uint64_t now)
{
    count_until(d, now);
    struct counts counts = d->counts;
    for (size_t i = 0; i < d->geometry.spindles; i++) {
        const struct spindle *s = &d->spindle[i];
        if (s->current)
            counts.busy_ns[i] += busy_ns(d, s, now < s->finish ? now : s->finish);
    }
    return counts;
}

void disk_reset_counts(struct disk *d, uint64_t now)
{
    count_until(d, now);
    memset(&d->counts, 0, sizeof d->counts);
    d->counts.deepest = d->depth;
    d->reset_at = now;
}
