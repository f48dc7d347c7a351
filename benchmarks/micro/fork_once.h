/*
 * fork_once.h: the time of one fork() whose child ends at once. What remains is the price of the
 * copy: of making it and of throwing it away.
 */
#ifndef FORK_ONCE_H
#define FORK_ONCE_H

#include <stddef.h>
#include <stdint.h>

struct fork_sample {
    size_t x;          /* what the caller measures against */
    uint64_t fork_ns;  /* until fork() has returned in the parent */
    uint64_t total_ns; /* until the child has ended and waitpid() has returned */
    int error;         /* errno of a fork() that failed, and then the times say nothing; or 0 */
};

/* Fills in all but x; dies if the child did not end with status 0. */
void fork_once(struct fork_sample *sample);

/* Prints the samples as TSV; x_name is the name of the first column. */
void fork_print(const struct fork_sample *samples, size_t count, const char *x_name);

#endif
