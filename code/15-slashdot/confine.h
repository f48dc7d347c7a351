/*
 * confine.h: what a client that has taken over a worker can still do. A worker parses what
 * strangers send, and one may find a mistake in it to use. It therefore gives up, before the first
 * client, what it does not need: Landlock refuses it all files but those below DOCROOT, a seccomp
 * filter all system calls but those it makes. Neither needs root, neither can be taken back.
 *
 * Limits: where the kernel lacks one of them, or refuses it, a worker serves without, and says so
 * with -v; the filter is for x86-64 and aarch64; stat() works outside DOCROOT.
 */
#ifndef CONFINE_H
#define CONFINE_H

#include <stdbool.h>

#include "options.h"

/* The report of a sanitizer needs /proc, and other programs: its builds are not confined. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFINE_NEVER true
#else
#define CONFINE_NEVER false
#endif

/*
 * From here on this thread, and all that it starts, can open files and folders below DOCROOT and
 * /dev/null, for reading alone. No TCP port can be bound or connected to (Linux 6.7), and no signal
 * be sent to a process outside (6.12). What is open already can be used as before. Call it before
 * there are threads. Both functions do nothing unless it is `wanted`.
 */
void confine_files(bool wanted, const struct options *o);

/*
 * From here on all threads of the process can make the calls of the list in confine.c; any other
 * fails with EPERM. After the threads: the list has no call that could start one.
 *
 * Why not end the worker? A call may be missing in the list, or a new C library may make another.
 * With EPERM one client has an error; with the worker all its clients would end, again and again.
 */
void confine_calls(bool wanted, const struct options *o);

#endif
