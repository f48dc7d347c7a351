#include "die.h"
#include "vector.h"

static void fill_nothing(void)
{
}

vector_fill_fn vector_fill_of(size_t bytes)
{
    if (bytes != 0)
        die(EXIT_UNSUPPORTED, "the vector registers are filled by instructions of x86-64 only");
    return fill_nothing;
}
