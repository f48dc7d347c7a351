/*
 * A process that outlives museum, to unmount what it has left: when museum is killed, nobody else
 * would, and everyone who looks into the mount gets ENOTCONN. (libfuse's auto_unmount does the
 * same, but in version 3.14 not for a user's mount without allow_other: fusermount3 may not look
 * into it then, and leaves it. github.com/libfuse/libfuse/pull/754) Also where libfuse could not
 * unmount: for a user fusermount3 does it, and refuses without /etc/mtab.
 */
#ifndef DISK_GUARDIAN_H
#define DISK_GUARDIAN_H

#include <stdbool.h>
#include <sys/types.h>

struct guardian {
    pid_t pid;
    int fd; /* while it is open, museum lives */
};

/* Before the mount and before any thread. `mountpoint`: absolute. False with errno. */
bool guardian_start(struct guardian *guardian, const char *mountpoint);

/* After the unmounting. Returns when it has looked whether that was done, and has mended it. */
void guardian_dismiss(struct guardian *guardian);

#endif
