/*
 * resident.h: memory that a process really has, in a known amount and in pages of a known size:
 * what fork() has to make a copy of, or at least a list.
 */
#ifndef RESIDENT_H
#define RESIDENT_H

#include <stddef.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

enum page_size { SMALL_PAGES, HUGE_PAGES };

/*
 * Reserves that much address space, of which nothing is resident yet, for pages of 4 KiB or, where
 * the kernel can, of 2 MiB (madvise(2), MADV_HUGEPAGE); dies if it cannot. Never freed: it lives as
 * long as the process.
 */
char *resident_reserve(size_t bytes, enum page_size size);

/* Writes to each page from start to end: then they are resident. */
void resident_fill(char *start, const char *end);

/*
 * The sizes at which these programs measure: 0, first, 2 * first, ... up to most and no further.
 * resident_next(size, first) follows size; behind the last one it is above most.
 */
size_t resident_next(size_t size, size_t first);

#endif
