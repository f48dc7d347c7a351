/* Unit tests of the museum disk's cache: exactly the least recently used page goes. */
#include <stdint.h>
#include <string.h>

#include "../../benchmarks/disk/cache.h"
#include "tap.h"

#define PAGE (uint64_t) CACHE_PAGE

static bool missing(struct cache *c, uint64_t inode, uint64_t page)
{
    uint64_t from = page * PAGE, to = from + PAGE;
    return cache_read(c, inode, &from, &to);
}

static void test_order(void)
{
    struct cache c;
    tap_ok(cache_init(&c, 3 * PAGE), "three pages");
    tap_ok(missing(&c, 7, 0) && missing(&c, 7, 1) && missing(&c, 8, 0), "are not there at first");
    tap_ok(!missing(&c, 7, 0), "and then are: 7/0 is the newest now");
    tap_ok(missing(&c, 9, 0), "a fourth goes in");
    tap_ok(missing(&c, 7, 1), "for 7/1, the oldest");
    tap_ok(missing(&c, 8, 0), "which came for 8/0");
    tap_ok(!missing(&c, 9, 0) && !missing(&c, 7, 1), "9/0 stayed");
    tap_ok(c.hits == 3 && c.misses == 6, "%llu hits, %llu misses", (unsigned long long)c.hits,
           (unsigned long long)c.misses);
    cache_free(&c);
}

/* What is left to read of [from, to). */
static void is_left(struct cache *c, uint64_t from, uint64_t to, uint64_t want_from,
                    uint64_t want_to)
{
    uint64_t begin = from, end = to;
    bool any = cache_read(c, 1, &begin, &end);
    tap_ok(any == (want_from < want_to) && (!any || (begin == want_from && end == want_to)),
           "of %llu-%llu is left %llu-%llu, expected %llu-%llu", (unsigned long long)from,
           (unsigned long long)to, (unsigned long long)begin, (unsigned long long)end,
           (unsigned long long)want_from, (unsigned long long)want_to);
}

static void test_parts(void)
{
    struct cache c;
    tap_ok(cache_init(&c, 100 * PAGE), "a hundred pages");
    is_left(&c, 100, 200, 100, 200);
    is_left(&c, 0, 3 * PAGE, PAGE, 3 * PAGE);
    is_left(&c, 10, 3 * PAGE - 10, 0, 0);
    is_left(&c, 5 * PAGE, 6 * PAGE, 5 * PAGE, 6 * PAGE);
    is_left(&c, 2 * PAGE, 7 * PAGE + 5, 3 * PAGE, 7 * PAGE + 5);
    cache_free(&c);
}

/* Against a list that is searched from end to end. */
static void test_against_a_list(void)
{
    enum { PAGES = 37, KEYS = 60, STEPS = 20000 };
    uint64_t list[PAGES]; /* newest first */
    size_t used = 0;
    struct cache c;
    uint64_t state = 12345;
    bool same = true;

    tap_ok(cache_init(&c, PAGES * PAGE), "%d pages", PAGES);
    for (int i = 0; i < STEPS; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        uint64_t key = (state >> 33) % KEYS, at = 0;
        while (at < used && list[at] != key)
            at++;
        bool expected = at == used;
        if (expected && used < PAGES)
            used++;
        else if (expected)
            at--;
        memmove(list + 1, list, at * sizeof *list);
        list[0] = key;
        same &= missing(&c, key / 8 + 100, key % 8) == expected;
    }
    tap_ok(same, "the same hits and misses in %d steps", STEPS);
    tap_ok(c.hits > STEPS / 4 && c.misses > STEPS / 4, "of both there were many");
    cache_free(&c);
}

static void test_none(void)
{
    struct cache c;
    tap_ok(cache_init(&c, PAGE - 1), "less than a page");
    tap_ok(missing(&c, 1, 1) && missing(&c, 1, 1), "keeps nothing");
    cache_free(&c);
}

int main(void)
{
    test_order();
    test_parts();
    test_against_a_list();
    test_none();
    return tap_done();
}
