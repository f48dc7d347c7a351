/*
 * tap.h: a test program in C prints one line a check, "ok 1 - what" or "not ok 2 - what", and at
 * its end how many there were: the Test Anything Protocol. tests/unit/test_unit.py runs it.
 */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>

/* One check. The format says what was checked, with the values: it is all that a failure shows. */
void tap_ok(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The last line: without it the program is taken to have died. Returns the status for main. */
int tap_done(void);

/* bytes[0..len) in a form that fits on a line. The result lives until the fourth next call. */
const char *tap_quote(const char *bytes, size_t len);

#endif
