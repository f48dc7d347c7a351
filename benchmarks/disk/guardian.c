/* The process that unmounts after a kill; see guardian.h. */
#include "guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS      20000000
#define LOOKS         100  /* 2 s for a mount that was under way */
#define LOOKS_CLOSING 1500 /* 30 s: a busy machine is late to close what the dead one held */

/* Only a mount whose file system has gone is ours to unmount. */
enum mount { NONE, CLOSING, LEFT_OVER };

static enum mount state(const char *mountpoint)
{
    struct statfs found;

    if (statfs(mountpoint, &found) == -1)
        return errno == ENOTCONN ? LEFT_OVER : NONE;
    return found.f_type == FUSE_SUPER_MAGIC ? CLOSING : NONE;
}

/*
 * Who is not root needs a program that is. fusermount3 asks /etc/mtab whose mount it is, which a
 * system without systemd may not have; umount asks /proc.
 */
static _Noreturn void unmount(const char *mountpoint)
{
    static const char script[] = "fusermount3 -u -z -q -- \"$0\" || umount -l -- \"$0\"";

    if (umount2(mountpoint, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        _exit(EXIT_SUCCESS);
    execl("/bin/sh", "sh", "-c", script, mountpoint, (char *)NULL);
    _exit(EXIT_FAILURE);
}

/* Of a session of its own, so that who kills museum's does not kill this; nor keeps it any pipe. */
static _Noreturn void watch(int fd, const char *mountpoint)
{
    char byte;
    ssize_t got;
    sigset_t all;
    int null = open("/dev/null", O_RDWR);

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    setsid();
    prctl(PR_SET_NAME, "museum-guardian");
    if (null == -1 || dup2(null, 0) == -1 || dup2(null, 1) == -1 || dup2(null, 2) == -1 ||
        chdir("/") == -1)
        _exit(EXIT_FAILURE);
    while ((got = read(fd, &byte, 1)) == -1 && errno == EINTR)
        continue;
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int look = 1;; look++) {
        enum mount found = state(mountpoint);
        if (found == LEFT_OVER)
            unmount(mountpoint);
        if (got != 0 || look >= (found == CLOSING ? LOOKS_CLOSING : LOOKS))
            _exit(EXIT_SUCCESS);
        nanosleep(&pause, NULL);
    }
}

bool guardian_start(struct guardian *g, const char *mountpoint)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) == -1)
        return false;
    g->pid = fork();
    if (g->pid == 0) {
        close(fds[1]);
        watch(fds[0], mountpoint);
    }
    int error = errno;
    close(fds[0]);
    g->fd = fds[1];
    if (g->pid != -1)
        return true;
    close(fds[1]);
    errno = error;
    return false;
}

void guardian_dismiss(struct guardian *g)
{
    ssize_t written;
    while ((written = write(g->fd, "", 1)) == -1 && errno == EINTR)
        continue;
    close(g->fd);
    while (waitpid(g->pid, NULL, 0) == -1 && errno == EINTR)
        continue;
}
