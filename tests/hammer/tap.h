/* The least of TAP: numbered results on stdout, failures in the exit status. */
#ifndef HAMMER_TEST_TAP_H
#define HAMMER_TEST_TAP_H

#include <stdbool.h>
#include <stdio.h>

static int tap_count;
static int tap_failed;

static inline void tap_ok(bool good, const char *what, const char *file, int line)
{
    tap_count++;
    if (good) {
        printf("ok %d - %s\n", tap_count, what);
        return;
    }
    tap_failed++;
    printf("not ok %d - %s (%s:%d)\n", tap_count, what, file, line);
}

/* Prints the expression itself as the description; survives -DNDEBUG, unlike assert. */
#define OK(expression) tap_ok((expression), #expression, __FILE__, __LINE__)

static inline int tap_end(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed > 0;
}

#endif
