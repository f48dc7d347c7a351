/*
 * From a request to its reply: out of the table of open files if that has it; else the file is
 * opened, by the loop itself where the kernel has all the names in its memory, by a thread where
 * they have to come from the disk.
 */
#include "15-slashdot/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "net.h"
#include "open_below.h"

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20 /* headers of before Linux 5.12 */
#endif

/* A name that has been looked up, or is being: by a thread, or by the loop, which does not wait. */
struct look_up {
    struct job job; /* first */
    int docroot_fd;
    struct found found; /* fd is -1: see error; the body only of a small file */
    int error;          /* errno */
    char path[REPLY_PATH_MAX];
};

/* Returns 0, or -1 with errno. */
static int see(struct found *found)
{
    found->seen = time(NULL);
    return fstat(found->fd, &found->st);
}

static bool is_small(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_size <= FILE_BODY_MOST;
}

/*
 * All of a small file. `flags` is RWF_NOWAIT or 0. A file that has become shorter or longer is not
 * kept: it is sent from its descriptor, as any other. Returns false if that would have to wait.
 */
static bool read_body(struct look_up *l, int flags)
{
    char *body = malloc(FILE_BODY_MOST + 1);
    struct iovec all = {body, FILE_BODY_MOST + 1};
    ssize_t n = -1;

    if (body != NULL)
        do
            n = preadv2(l->found.fd, &all, 1, 0, flags);
        while (n < 0 && errno == EINTR);
    bool waits = body != NULL && flags != 0 && n != l->found.st.st_size &&
                 (n >= 0 || errno == EAGAIN || errno == EOPNOTSUPP);
    if (n == l->found.st.st_size)
        l->found.body = realloc(body, (size_t)n + 1);
    if (l->found.body == NULL)
        free(body);
    return !waits;
}

static void fail(struct look_up *l)
{
    l->error = errno;
    if (l->found.fd >= 0)
        close(l->found.fd);
    l->found.fd = -1;
}

/* In a thread, where there is time. */
static void look(struct job *job)
{
    struct look_up *l = (struct look_up *)job;

    l->found.asked = now_ms();
    l->found.fd = open_below(l->docroot_fd, l->path);
    if (l->found.fd < 0 || see(&l->found) < 0)
        fail(l);
    else if (is_small(&l->found.st))
        read_body(l, 0);
}

/* Returns whether somebody else looks now. */
static bool let_look(struct look_up *l, struct exchange *x)
{
    struct look_up *copy = malloc(sizeof *copy);

    if (copy == NULL)
        return false;
    *copy = (struct look_up){.docroot_fd = l->docroot_fd};
    memcpy(copy->path, l->path, sizeof l->path);
    copy->job.conn = x->conn;
    copy->job.run = look;
    x->held = copy;
    pool_run(disk_threads, &copy->job);
    return true;
}

/* With `f`, the caller's use of it goes to the reply. */
static void reply_with(struct exchange *x, const struct request *req, struct file *f)
{
    if (f != NULL && transfer_begin(x, f)) {
        file_reply(f, &x->reply, req);
        return;
    }
    if (f != NULL)
        file_release(f);
    reply_error(&x->reply, req, 503); /* no memory: will pass */
}

static void reply_found_or_not(struct exchange *x, const struct request *req, struct look_up *l)
{
    if (l->found.fd >= 0) {
        reply_with(x, req, file_enter(l->path, &l->found, now_ms()));
    } else {
        if (!accept_lacks_room(l->error)) /* else it may be there all the same */
            file_forget(l->path);
        reply_errno(&x->reply, req, l->error);
    }
}

/*
 * As open_below(), but -1 with EAGAIN where the kernel does not have all of the path in its memory:
 * openat2(2), RESOLVE_CACHED, Linux 5.12. EAGAIN too where there is no such thing, so that who can
 * wait does it.
 */
static int open_cached(int root, const char *path)
{
    struct open_how how = {
        .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED,
    };
    long fd = syscall(SYS_openat2, root, path, &how, sizeof how);

    if (fd < 0 && (errno == ENOSYS || errno == EINVAL || errno == EPERM || errno == EINTR))
        errno = EAGAIN; /* before 5.6, before 5.12, forbidden by a container's filter */
    return (int)fd;
}

/* Looks without waiting for the disk. Returns false if that cannot be. */
static bool look_now(struct look_up *l, struct file *known, long long now)
{
    struct found *found = &l->found;

    found->asked = now;
    found->fd = open_cached(l->docroot_fd, l->path);
    if (found->fd < 0 && errno == EAGAIN)
        return false;
    if (found->fd < 0 || see(found) < 0) { /* the inode is in memory: it is open */
        fail(l);
        return true;
    }
    if ((known != NULL && file_confirm(known, &found->st, now)) || !is_small(&found->st))
        return true;
    if (read_body(l, RWF_NOWAIT))
        return true;
    close(found->fd);
    found->fd = -1;
    return false;
}

bool transfer_find(struct exchange *x, const struct request *req, int docroot_fd)
{
    static struct look_up here;
    struct look_up *waited = x->held;
    long long now = now_ms();
    bool fresh;

    if (waited != NULL) {
        if (waited->job.state == UNDER_WAY)
            return false;
        x->held = NULL;
        reply_found_or_not(x, req, waited);
        free(waited);
        return true;
    }
    int status = reply_path(req, here.path);
    if (status != 0) {
        reply_error(&x->reply, req, status);
        return true;
    }
    struct file *f = file_find(here.path, now, &fresh);
    if (fresh) {
        reply_with(x, req, f);
        return true;
    }
    here.docroot_fd = docroot_fd;
    here.found.body = NULL;
    bool known = look_now(&here, f, now);
    if (f != NULL)
        file_release(f);
    if (!known && let_look(&here, x))
        return false;
    if (!known)
        reply_error(&x->reply, req, 503);
    else
        reply_found_or_not(x, req, &here);
    return true;
}
