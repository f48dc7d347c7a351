#include "open_below.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef O_PATH /* on Linux and FreeBSD it opens folders that may be searched but not read */
#define O_PATH O_RDONLY
#endif

/* Opens one name in the folder `at`, refusing a link (ELOOP) and the way up (EXDEV). */
static int open_component(int at, const char *name, int flags)
{
    if (strcmp(name, "..") == 0) {
        errno = EXDEV;
        return -1;
    }
    int fd = openat(at, name, flags | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == EMLINK) /* FreeBSD's word for ELOOP */
        errno = ELOOP;
#ifdef EFTYPE /* NetBSD's */
    if (fd < 0 && errno == EFTYPE)
        errno = ELOOP;
#endif
    return fd;
}

/* With O_PATH and O_NOFOLLOW open() opens the link itself instead of failing with ELOOP, so what
 * was opened has to be checked. */
static int open_folder(int at, const char *name)
{
    struct stat st = {0};
    int fd = open_component(at, name, O_PATH | O_NONBLOCK);

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        return fd;
    close(fd);
    errno = S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
    return -1;
}

int open_below_walk(int root, const char *path)
{
    char copy[PATH_MAX];
    size_t len = strlen(path);
    int at = root;

    if (len >= sizeof copy) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(copy, path, len + 1);
    char *name = copy, *slash;
    while ((slash = strchr(name, '/')) != NULL) {
        *slash = '\0';
        if (*name != '\0') { /* "a//b" is "a/b" */
            int next = open_folder(at, name);
            int error = errno;
            if (at != root)
                close(at);
            errno = error;
            if (next < 0)
                return -1;
            at = next;
        }
        name = slash + 1;
    }
    int fd = open_component(at, *name != '\0' ? name : ".", O_RDONLY | O_NONBLOCK | O_NOCTTY);
    int error = errno;
    if (at != root)
        close(at);
    errno = error;
    return fd;
}
