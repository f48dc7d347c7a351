/*
 * spinners.h: processes that want nothing but the processor, and cannot outlive their parent.
 */
#ifndef SPINNERS_H
#define SPINNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct spinners {
    pid_t *pid;
    size_t count;
};

/*
 * Starts count processes, or none, that run without end, `nicer` steps nicer than we are. If one
 * cannot be made: false, with errno set and `count` of those there are; spinners_end() ends them.
 */
bool spinners_start(struct spinners *spinners, size_t count, int nicer);

/* Ends and reaps them. */
void spinners_end(struct spinners *spinners);

#endif
