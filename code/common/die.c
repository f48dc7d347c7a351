#include "die.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *program_name = "?";

void set_program_name(const char *argv0)
{
    const char *slash = argv0 != NULL ? strrchr(argv0, '/') : NULL;

    if (argv0 != NULL && *argv0 != '\0') /* execve() allows no argv[0], or an empty one */
        program_name = slash != NULL ? slash + 1 : argv0;
}

/* One fprintf a line, so that lines of several processes do not mix. */
static void write_to_stderr(const char *text)
{
    fprintf(stderr, "%s: %s\n", program_name, text);
}

void (*write_line)(const char *text) = write_to_stderr;

static void print_line(const char *format, va_list args, const char *reason)
{
    char text[4608]; /* a path may have 4096 bytes, and the reason stands behind it */
    int len = vsnprintf(text, sizeof text, format, args);

    if (reason != NULL && len >= 0 && (size_t)len < sizeof text)
        snprintf(text + len, sizeof text - (size_t)len, ": %s", reason);
    write_line(text);
}

void die(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_line(format, args, NULL);
    va_end(args);
    exit(status);
}

void die_errno(const char *format, ...)
{
    const char *reason = strerror(errno);
    va_list args;
    va_start(args, format);
    print_line(format, args, reason);
    va_end(args);
    exit(EXIT_FAILURE);
}

void warn_errno(const char *format, ...)
{
    const char *reason = strerror(errno);
    va_list args;
    va_start(args, format);
    print_line(format, args, reason);
    va_end(args);
}
