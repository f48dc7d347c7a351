/* Unit tests of the museum disk's model: what a reader gets, what readers get, and who waits. */
#include <math.h>
#include <stdint.h>

#include "../../benchmarks/disk/model.h"
#include "tap.h"

#define MS 1000000ull
#define KB 1024ull

enum { MOST_READERS = 512 };

/* xorshift: the same numbers everywhere. */
static uint64_t random_state = 88172645463325252ull;
static uint64_t draw(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 11) % below;
}

static struct geometry with(uint64_t spindles, enum scheduler scheduler)
{
    struct geometry g = default_geometry();
    g.spindles = spindles;
    g.scheduler = scheduler;
    return g;
}

static void near(double value, double expected, double tolerance, const char *what)
{
    tap_ok(fabs(value - expected) <= tolerance * expected, "%s: %g, expected %g", what, value,
           expected);
}

static size_t first_done(const struct disk *d)
{
    size_t first = MAX_SPINDLES;
    for (size_t i = 0; i < d->geometry.spindles; i++)
        if (d->spindle[i].current &&
            (first == MAX_SPINDLES || d->spindle[i].finish < d->spindle[first].finish))
            first = i;
    return first;
}

struct outcome {
    double seconds, longest_s;
    struct counts counts;
};

/* Each reader asks for the next block, anywhere, when it has one. */
static struct outcome run(const struct geometry *g, size_t readers, uint64_t reads, uint64_t length)
{
    static struct request requests[MOST_READERS];
    static struct disk d;
    uint64_t now = 0, longest = 0, came = readers, went = 0;

    disk_init(&d, g);
    for (size_t i = 0; i < readers; i++) {
        requests[i] = (struct request){.start = draw(g->capacity - length), .length = length};
        disk_submit(&d, &requests[i], 0);
    }
    for (; went < reads; went++, came++) {
        size_t s = first_done(&d);
        now = d.spindle[s].finish;
        struct request *r = disk_finish(&d, s);
        if (now - r->arrived > longest)
            longest = now - r->arrived;
        r->start = draw(g->capacity - length);
        disk_submit(&d, r, now);
    }
    struct outcome o = {.seconds = (double)now / 1e9, .longest_s = (double)longest / 1e9};
    o.counts = disk_counts(&d, now);
    tap_ok(came - went == d.depth && d.depth == readers, "none is lost: %llu came, %llu went",
           (unsigned long long)came, (unsigned long long)went);
    return o;
}

static void test_parts_of_a_service(void)
{
    struct geometry g = default_geometry();
    near(half_turn_ns(&g), 4166667, 1e-6, "half a turn at 7200 rpm");
    near(transfer_ns(&g, 30000000), 1e9, 1e-9, "30 MB take a second");
    tap_ok(seek_ns(&g, 0) <= 0 && seek_ns(&g, 100000) <= 0, "no seek within a track");
    near(seek_ns(&g, 1000000), 1e6, 0.05, "to the next tracks");
    near(seek_ns(&g, g.capacity / 3), 8.5e6, 1e-6, "a third of the stroke is the average seek");
    near(seek_ns(&g, g.capacity), 18e6, 1e-9, "the full stroke");
    bool rises = true;
    for (uint64_t i = 1; i < 1000; i++)
        rises &= seek_ns(&g, g.capacity / 1000 * i) < seek_ns(&g, g.capacity / 1000 * (i + 1));
    tap_ok(rises, "farther takes longer");
}

static void test_one_reader(void)
{
    struct geometry g = with(1, FIFO);
    struct outcome o = run(&g, 1, 20000, 100 * KB);
    /* Over two random places the distance x, in strokes, has the density 2(1 - x). */
    double seek = 0;
    for (int i = 0; i < 10000; i++) {
        double x = (i + 0.5) / 10000;
        seek += 2 * (1 - x) / 10000 * seek_ns(&g, (uint64_t)(x * (double)g.capacity));
    }
    double each = seek + half_turn_ns(&g) + transfer_ns(&g, 100 * KB);
    near(20000 / o.seconds, 1e9 / each, 0.01, "one reader gets 1 / (seek + half turn + transfer)");
    near(seek, 8.5e6, 0.1, "the mean of the curve is near what the data sheet calls average");
    near((double)o.counts.busy_ns[0] / 1e9, o.seconds, 1e-9, "and the spindle is never idle");
}

static void test_two_spindles(void)
{
    struct geometry one = with(1, FIFO), two = with(2, FIFO);
    double alone = 20000 / run(&one, 1, 20000, 100 * KB).seconds;
    struct outcome lone = run(&two, 1, 20000, 100 * KB);
    struct outcome many = run(&two, 100, 20000, 100 * KB);
    near(20000 / many.seconds, 2 * alone, 0.02, "many readers get what two spindles have");
    double gain = 20000 / lone.seconds / alone;
    tap_ok(gain > 1.05 && gain < 1.4, "one reader gets the nearer of two heads: %g times", gain);
    near(many.counts.depth_ns / 1e9 / many.seconds, 100, 0.001, "100 readers are a depth of 100");
    near(lone.counts.depth_ns / 1e9 / lone.seconds, 1, 0.001, "one reader is a depth of 1");
    tap_ok(many.counts.deepest == 100, "at most %llu", (unsigned long long)many.counts.deepest);
}

static void test_elevator(void)
{
    struct geometry fifo = with(1, FIFO), elevator = with(1, ELEVATOR);
    for (size_t readers = 4; readers <= 256; readers *= 8) {
        struct outcome a = run(&fifo, readers, 10000, 4 * KB);
        struct outcome b = run(&elevator, readers, 10000, 4 * KB);
        tap_ok(b.counts.strokes < a.counts.strokes * 0.8 && b.seconds < a.seconds,
               "%zu readers: the elevator goes %g strokes, FIFO %g", readers, b.counts.strokes,
               a.counts.strokes);
        tap_ok(b.longest_s < 8 * a.longest_s, "and nobody waits forever: %g s, FIFO %g s",
               b.longest_s, a.longest_s);
    }
    struct outcome a = run(&fifo, 1, 1000, 4 * KB), b = run(&elevator, 1, 1000, 4 * KB);
    near(b.seconds, a.seconds, 0.1, "one reader leaves it nothing to choose");
}

/* One who reads on and on where the head is, and one who asked for something behind it. */
static uint64_t wait_behind_a_stream(double expire_ms)
{
    struct geometry g = with(1, ELEVATOR);
    struct request stream[2], far = {.start = 0, .length = 4 * KB};
    static struct disk d;
    uint64_t next = g.capacity / 4;

    g.expire_ms = expire_ms;
    disk_init(&d, &g);
    for (int i = 0; i < 2; i++, next += 128 * KB) {
        stream[i] = (struct request){.start = next, .length = 128 * KB};
        disk_submit(&d, &stream[i], 0);
    }
    disk_submit(&d, &far, 0);
    for (int i = 0; i < 100000; i++) {
        uint64_t now = d.spindle[0].finish;
        struct request *r = disk_finish(&d, 0);
        if (r == &far)
            return now;
        r->start = next;
        next += 128 * KB;
        disk_submit(&d, r, now);
    }
    return UINT64_MAX;
}

static void test_no_starvation(void)
{
    uint64_t waited = wait_behind_a_stream(500);
    tap_ok(waited > 400 * MS && waited < 700 * MS, "who has waited 500 ms is next: %llu ns",
           (unsigned long long)waited);
    tap_ok(wait_behind_a_stream(0) == UINT64_MAX, "without that he would starve");
}

static void test_sequential(void)
{
    struct geometry g = with(2, FIFO);
    static struct disk d;
    struct request r[8];
    uint64_t now = 0;
    size_t s;
    bool in_order = true;

    disk_init(&d, &g);
    for (unsigned i = 0; i < 8; i++) {
        r[i] = (struct request){.start = 1000000000ull + i * 128 * KB, .length = 128 * KB};
        disk_submit(&d, &r[i], 0);
    }
    for (int i = 0; (s = first_done(&d)) != MAX_SPINDLES; i++) {
        now = d.spindle[s].finish;
        in_order &= disk_finish(&d, s) == &r[i];
    }
    struct counts c = disk_counts(&d, now);
    tap_ok(in_order && c.seeks == 1 && c.continuations == 7, "a file in eight pieces: %llu seeks",
           (unsigned long long)c.seeks);
    tap_ok(c.busy_ns[0] == 0 || c.busy_ns[1] == 0, "and one spindle's work");
    double expected = seek_ns(&g, 1000000000) + half_turn_ns(&g) + transfer_ns(&g, 1024 * KB);
    near((double)now, expected, 1e-6, "seek, half a turn and the transfer of all of it");
}

static void test_gap_and_back(void)
{
    struct geometry g = with(1, FIFO);
    static struct disk d;
    struct request a = {.start = 0, .length = 4096}, b = {.start = 8192, .length = 4096};

    disk_init(&d, &g);
    disk_submit(&d, &a, 0);
    uint64_t begun = d.spindle[0].finish;
    disk_finish(&d, 0);
    disk_submit(&d, &b, begun);
    near((double)(d.spindle[0].finish - begun), transfer_ns(&g, 8192), 1e-3,
         "a short gap passes under the head");
    begun = d.spindle[0].finish;
    disk_finish(&d, 0);
    disk_submit(&d, &a, begun);
    near((double)(d.spindle[0].finish - begun), half_turn_ns(&g) + transfer_ns(&g, 4096), 1e-3,
         "what is just behind it costs half a turn");
}

/* A caller that wakes late does not make the disk slower, nor a spindle do two things at once. */
static void test_late_callers(void)
{
    struct geometry g = with(2, FIFO);
    static struct disk d;
    static struct request r[64];
    uint64_t finish[2] = {0, 0};
    bool one_at_a_time = true;

    disk_init(&d, &g);
    for (int i = 0; i < 64; i++) {
        r[i] = (struct request){.start = draw(g.capacity - 4096), .length = 4096};
        disk_submit(&d, &r[i], 0);
    }
    for (int i = 0; i < 64; i++) {
        size_t s = d.spindle[i & 1].current ? (size_t)i & 1 : !(i & 1);
        one_at_a_time &= d.spindle[s].start >= finish[s];
        finish[s] = d.spindle[s].finish;
        disk_finish(&d, s);
    }
    struct counts c = disk_counts(&d, finish[0] > finish[1] ? finish[0] : finish[1]);
    tap_ok(one_at_a_time && d.depth == 0, "a spindle does one thing at a time");
    for (int s = 0; s < 2; s++)
        near((double)c.busy_ns[s], (double)finish[s], 0.05, "it works to its end without a pause");
}

/* Both idle, one has a later time behind it: what comes for it must not begin in its past. */
static void test_idle_with_a_later_time(void)
{
    struct geometry g = with(2, FIFO);
    static struct disk d;
    struct request a = {.start = 100 * KB, .length = 128 * KB};
    struct request b = {.start = 79 * 1000000000ull, .length = 4 * KB};
    struct request c = {.start = a.start + a.length, .length = 4 * KB};

    disk_init(&d, &g);
    disk_submit(&d, &a, 0);
    disk_submit(&d, &b, 0);
    disk_submit(&d, &c, 0);
    size_t late = d.spindle[0].current == &b ? 0 : 1;
    uint64_t finish = d.spindle[late].finish;
    disk_finish(&d, late);
    tap_ok(d.spindle[late].current == NULL, "what goes on where the other one ends is left to it");
    disk_finish(&d, !late);
    tap_ok(d.spindle[!late].current == &c, "and it takes it");
    tap_ok(d.spindle[late].finish == finish, "the idle one keeps its time");
}

static void test_reset(void)
{
    struct geometry g = with(1, FIFO);
    static struct disk d;
    struct request a = {.start = 80000000000ull, .length = 4096};

    disk_init(&d, &g);
    disk_submit(&d, &a, 1000);
    uint64_t finish = d.spindle[0].finish, middle = (1000 + finish) / 2;
    tap_ok(disk_counts(&d, middle).busy_ns[0] == middle - 1000, "half done is half busy");
    disk_reset_counts(&d, middle);
    struct counts c = disk_counts(&d, middle);
    tap_ok(c.requests == 0 && c.busy_ns[0] == 0 && c.depth_ns <= 0 && c.deepest == 1,
           "a phase begins with nothing but what is there");
    disk_finish(&d, 0);
    c = disk_counts(&d, finish);
    tap_ok(c.busy_ns[0] == finish - middle, "and has its own part of what was in service");
}

static void test_problems(void)
{
    struct geometry g = default_geometry();
    tap_ok(geometry_problem(&g) == NULL, "the default disk is a disk");
    g.full_ms = 8;
    tap_ok(geometry_problem(&g) != NULL, "a full stroke is not shorter than the average");
    g = default_geometry();
    g.spindles = MAX_SPINDLES + 1;
    tap_ok(geometry_problem(&g) != NULL, "no more spindles than there is room for");
}

int main(void)
{
    test_parts_of_a_service();
    test_one_reader();
    test_two_spindles();
    test_elevator();
    test_no_starvation();
    test_sequential();
    test_gap_and_back();
    test_late_callers();
    test_idle_with_a_later_time();
    test_reset();
    test_problems();
    return tap_done();
}
