/*
 * privileges.h: a server needs root for a port below 1024 and for nothing else. Once it has the
 * port it gives root up: what a client makes it do afterwards is done with the rights of -u USER.
 */
#ifndef PRIVILEGES_H
#define PRIVILEGES_H

/*
 * For -u: finds the user, a name or a number, and renounces what set-user-ID programs would give
 * (no_new_privs, Linux only). That holds for each thread by itself, so it is done here, before
 * there is a second one. An unknown user, or one that this process may not become, ends the program
 * with EXIT_FAILURE, nonsense with EXIT_USAGE.
 */
void privileges_user(const char *user);

/*
 * Becomes that user, in its own group and in no other, and makes sure that root cannot be had back.
 * Once all sockets are bound. Does nothing without -u, and in a process that is that user already:
 * so a restarted server may have the same command line. What fails ends the program.
 *
 * Before the first thread, as far as possible: glibc and musl change all threads of the process,
 * but dietlibc changes the caller alone, and nothing changes the kernel's workers of an io_uring.
 */
void privileges_drop(void);

/* Prints a line on stderr if root serves and there was no -u. */
void privileges_warn(void);

#endif
