/*
 * A page cache that is only counted: which pages would be in memory, least recently used out
 * first. It holds no data, for a file's content costs nothing here. The cache of the kernel, under
 * the mount, is made to forget a file whenever it is opened; so this one decides, whatever memory
 * the machine has.
 */
#ifndef DISK_CACHE_H
#define DISK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_PAGE 4096u

struct cached_page {
    uint64_t inode, page;
    uint32_t older, newer; /* indexes, as `chain` */
    uint32_t chain;        /* the next one with the same hash */
};

struct cache {
    struct cached_page *pages; /* [0] is the ring's own: its `newer` is the oldest of all */
    uint32_t *buckets;
    uint32_t capacity, used, bucket_mask;
    uint64_t hits, misses; /* pages */
};

/* For so many bytes, rounded down to pages; 0: nothing is ever cached. False: no memory. */
bool cache_init(struct cache *cache, uint64_t bytes);
void cache_free(struct cache *cache);

/*
 * Reads bytes [*from, *to) of a file: all their pages become the newest. What was missing is left
 * in *from and *to, as one stretch from the first missing page to the last; false if nothing was.
 */
bool cache_read(struct cache *cache, uint64_t inode, uint64_t *from, uint64_t *to);

#endif
