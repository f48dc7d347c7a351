/*
 * die.h: how a program of this project ends when it cannot go on: one line on stderr,
 * "NAME: what: reason", and a status. Programs call these; the libraries here return errors
 * instead.
 */
#ifndef DIE_H
#define DIE_H

#define EXIT_USAGE       2  /* the command line is wrong */
#define EXIT_UNSUPPORTED 77 /* this system cannot run this program; test suites: "skipped" */

/* The last part of argv[0]; set by known_state() or by hand, before anything can fail. */
extern const char *program_name;
void set_program_name(const char *argv0);

/* What writes the lines: to stderr, or what log_open() of log.h puts in its place. */
extern void (*write_line)(const char *text);

/* Prints "NAME: message" and exits with status. */
_Noreturn void die(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "NAME: message: strerror(errno)" and exits with EXIT_FAILURE. */
_Noreturn void die_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same line without the exit: for errors that end one connection and not the server. */
void warn_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
