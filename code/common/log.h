/*
 * log.h: lines on stderr that never make the server wait. Nobody may be reading stderr: a pipe is
 * full after 64 KiB, Ctrl-S stops a terminal, and a blocking write() then waits for ever. A line
 * that cannot be written at once is counted, and the count is written when there is room again.
 */
#ifndef LOG_H
#define LOG_H

#include <stddef.h>

#define LOG_LINE_MAX 4096 /* bytes of a line; a pipe takes so many at once or none (PIPE_BUF) */

/* Call it before fork() and before threads, which share the count; and again when stderr has become
 * another file. From then on die() and warn_errno() of die.h write as log_line() does. Never fails.
 */
void log_open(void);

/* Writes "NAME: text" and a newline, in all LOG_LINE_MAX bytes at most; the rest is cut. */
void log_line(const char *text);

/* Copies len bytes and a NUL to `to`, of `size` bytes: quotes, backslashes and all that is not
 * printable ASCII as \xNN, safe for terminals and for programs that read logs. The rest is cut. */
void log_escape(char *to, size_t size, const char *bytes, size_t len);

#endif
