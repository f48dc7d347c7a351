/* splitmix64: small, fast, and the same sequence everywhere for the same seed. */
#ifndef HAMMER_RANDOM_H
#define HAMMER_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* A number from 0 to n-1, 0 < n < 2^32. The bias of this scaling is below n / 2^32. */
static inline uint32_t random_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(((random_next(state) >> 32) * n) >> 32);
}

#endif
