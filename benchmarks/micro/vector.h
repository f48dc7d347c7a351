/* The vector registers of a processor: state that a change of process has to save and load. */
#ifndef VECTOR_H
#define VECTOR_H

#include <stddef.h>

/* Fills all vector registers that are `bytes` wide. */
typedef void (*vector_fill_fn)(void);

/*
 * What fills registers of that many bytes: 0 (nothing to fill), 16, 32 or 64. Exits 77 if this
 * processor has none of that width, or if this file does not know its instructions.
 */
vector_fill_fn vector_fill_of(size_t bytes);

#endif
