/*
 * smaps.h: what the memory of a process consists of, from /proc/PID/smaps_rollup (proc(5)).
 */
#ifndef SMAPS_H
#define SMAPS_H

#include <stddef.h>
#include <sys/types.h>

/*
 * The value of a line of that file, as "Private_Dirty", in KiB; pid 0 is this process. Allocates
 * nothing, so that it does not change what it asks for. Dies if the process is gone; with 77 where
 * there is no such file (before Linux 4.14, and on other systems).
 */
size_t smaps_kib(pid_t pid, const char *field);

#endif
