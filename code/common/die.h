/*
 * die.h: how a program of this project ends when it cannot go on: one line on stderr,
 * "NAME: what: reason", and a status. For failures of the whole program; a function returns the
 * failure of one connection to its caller instead.
 */
#ifndef DIE_H
#define DIE_H

#define EXIT_USAGE       2  /* the command line is wrong */
#define EXIT_UNSUPPORTED 77 /* this system cannot run this program; test suites: "skipped" */

/* The last part of argv[0]; set it (known_state() does) before anything can fail. */
extern const char *program_name;
void set_program_name(const char *argv0);

/* Writes "NAME: text" as one line to stderr; log_open() of log.h puts log_line() in its place. */
extern void (*write_line)(const char *text);

/* Prints "NAME: message" and exits with status. */
_Noreturn void die(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "NAME: message: strerror(errno)" and exits with EXIT_FAILURE. */
_Noreturn void die_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same line without the exit: for errors that end one connection and not the server. */
void warn_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
