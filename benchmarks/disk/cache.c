/* A page cache that is only counted; see cache.h. */
#include "cache.h"

#include <stdlib.h>

/* 2^31 pages, 8 TiB: indexes stay within 32 bits. */
#define MOST_PAGES (1u << 31)

bool cache_init(struct cache *c, uint64_t bytes)
{
    uint64_t pages = bytes / CACHE_PAGE;
    uint32_t buckets = 1;

    *c = (struct cache){.capacity = pages < MOST_PAGES ? (uint32_t)pages : MOST_PAGES - 1};
    if (c->capacity == 0)
        return true;
    while (buckets < c->capacity)
        buckets *= 2;
    c->bucket_mask = buckets - 1;
    c->pages = calloc((size_t)c->capacity + 1, sizeof *c->pages);
    c->buckets = calloc(buckets, sizeof *c->buckets);
    if (c->pages && c->buckets)
        return true;
    cache_free(c);
    return false;
}

void cache_free(struct cache *c)
{
    free(c->pages);
    free(c->buckets);
    *c = (struct cache){.capacity = 0};
}

static uint32_t *bucket_of(struct cache *c, uint64_t inode, uint64_t page)
{
    uint64_t hash = (inode * 0x9e3779b97f4a7c15ull) ^ (page * 0xc2b2ae3d27d4eb4full);
    return &c->buckets[(hash ^ hash >> 29) & c->bucket_mask];
}

/* Where the index of this page stands, or the 0 at the end of its chain. */
static uint32_t *find(struct cache *c, uint64_t inode, uint64_t page)
{
    uint32_t *link = bucket_of(c, inode, page);
    while (*link != 0 && (c->pages[*link].inode != inode || c->pages[*link].page != page))
        link = &c->pages[*link].chain;
    return link;
}

static void unlink_age(struct cache *c, uint32_t i)
{
    struct cached_page *p = &c->pages[i];
    c->pages[p->older].newer = p->newer;
    c->pages[p->newer].older = p->older;
}

static void make_newest(struct cache *c, uint32_t i)
{
    struct cached_page *p = &c->pages[i];
    p->newer = 0;
    p->older = c->pages[0].older;
    c->pages[p->older].newer = i;
    c->pages[0].older = i;
}

/* A free place, if need be that of the oldest page. */
static uint32_t place(struct cache *c)
{
    if (c->used < c->capacity)
        return ++c->used;
    uint32_t i = c->pages[0].newer;
    *find(c, c->pages[i].inode, c->pages[i].page) = c->pages[i].chain;
    unlink_age(c, i);
    return i;
}

/* True if the page was there; it is now. */
static bool touch(struct cache *c, uint64_t inode, uint64_t page)
{
    uint32_t i = *find(c, inode, page);
    if (i != 0) {
        unlink_age(c, i);
        make_newest(c, i);
        return true;
    }
    i = place(c);
    c->pages[i].inode = inode;
    c->pages[i].page = page;
    c->pages[i].chain = 0;
    *find(c, inode, page) = i; /* only now: the oldest may have been in the same chain */
    make_newest(c, i);
    return false;
}

bool cache_read(struct cache *c, uint64_t inode, uint64_t *from, uint64_t *to)
{
    uint64_t end = *to;
    bool missing = false;
    if (c->capacity == 0)
        return *from < end;
    for (uint64_t page = *from / CACHE_PAGE; page * CACHE_PAGE < end; page++) {
        if (touch(c, inode, page)) {
            c->hits++;
            continue;
        }
        c->misses++;
        if (!missing && page * CACHE_PAGE > *from)
            *from = page * CACHE_PAGE;
        missing = true;
        *to = (page + 1) * CACHE_PAGE < end ? (page + 1) * CACHE_PAGE : end;
    }
    return missing;
}
