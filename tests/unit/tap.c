#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define QUOTE_MAX 400
#define QUOTES    4

static int checks, failures;

void tap_ok(bool ok, const char *format, ...)
{
    va_list args;

    checks++;
    failures += !ok;
    printf("%sok %d - ", ok ? "" : "not ", checks);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

int tap_done(void)
{
    printf("1..%d\n", checks);
    return failures == 0 && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

const char *tap_quote(const char *bytes, size_t len)
{
    static char quotes[QUOTES][QUOTE_MAX];
    static int next;
    char *quote = quotes[next++ % QUOTES], *at = quote;

    for (size_t i = 0; i < len && at < quote + QUOTE_MAX - 8; i++) {
        if (bytes[i] >= ' ' && bytes[i] < 0x7f)
            *at++ = bytes[i];
        else
            at += sprintf(at, "\\x%02x", (unsigned char)bytes[i]);
    }
    strcpy(at, at < quote + QUOTE_MAX - 8 ? "" : "...");
    return quote;
}
