/*
 * log.h: lines on stderr that never make the server wait. Who reads them may be asleep: a pipe is
 * full after 64 KiB, a terminal is stopped by Ctrl-S, and a write() that waits then waits for ever.
 * A line that cannot be written at once is counted instead, and the count is written when there is
 * room again.
 */
#ifndef LOG_H
#define LOG_H

#include <stddef.h>

#define LOG_LINE_MAX 4096 /* bytes of a line; a pipe takes so many at once or none (PIPE_BUF) */

/* Before there are other processes or threads, since all of them count together; and again when
 * stderr has become another file. From then on die() and warn_errno() of die.h write as log_line()
 * does. Never fails: what the system lacks, it does without. */
void log_open(void);

/* Writes "NAME: text" and a newline; a longer line is cut. */
void log_line(const char *text);

/* Copies len bytes to `to` of `size` bytes, as text that a terminal and a reader of logs can be
 * given: quotes, backslashes and whatever is not printable ASCII as \xNN. What does not fit is left
 * out. */
void log_escape(char *to, size_t size, const char *bytes, size_t len);

#endif
