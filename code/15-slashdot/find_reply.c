/*
 * From a request to its reply: out of the table of open files if that has it; else the file is
 * opened, by the loop itself where the kernel has all the names in its memory, by a thread where
 * they have to come from the disk.
 */
#include "15-slashdot/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "12-aio/cached.h"
#include "clock.h"
#include "net.h"
#include "open_below.h"

#define LOOK_UP_THREADS 4

static struct pool *look_up_threads;

void transfer_start(int readers, int docroot_fd)
{
    look_up_threads = pool_start(LOOK_UP_THREADS);
    disk_threads = pool_start(readers);
    cached_how(docroot_fd); /* asks now, and not in the first request */
}

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
 * All of a small file, by pread() or read_cached(). A file that has become shorter or longer is not
 * kept: it is sent from its descriptor, as any other. Returns false if that would have to wait.
 */
static bool read_body(struct look_up *l, ssize_t (*read_by)(int, void *, size_t, off_t))
{
    char *body = malloc(FILE_BODY_MOST + 1);
    ssize_t n = -1;

    if (body != NULL)
        do
            n = read_by(l->found.fd, body, FILE_BODY_MOST + 1, 0);
        while (n < 0 && errno == EINTR);
    bool waits = body != NULL && read_by == read_cached && n != l->found.st.st_size &&
                 (n >= 0 || errno == EAGAIN);
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
        read_body(l, pread);
}

static void drop(struct job *job)
{
    struct look_up *l = (struct look_up *)job;

    if (l->found.fd >= 0)
        close(l->found.fd);
    free(l->found.body);
    free(l);
}

/* Returns whether a thread looks now. */
static bool let_look(struct look_up *l, struct exchange *x)
{
    struct look_up *copy = jobs_refused() ? NULL : malloc(sizeof *copy);

    if (copy == NULL)
        return false;
    *copy = (struct look_up){.docroot_fd = l->docroot_fd, .found.fd = -1};
    memcpy(copy->path, l->path, sizeof l->path);
    copy->job.conn = x->conn;
    copy->job.run = look;
    x->held = copy;
    pool_run(look_up_threads, &copy->job);
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
    if (read_body(l, read_cached))
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
        bool under_way = waited->job.state == UNDER_WAY;
        if (under_way && !job_is_lost(&waited->job))
            return false;
        x->held = NULL;
        if (under_way) {
            job_give_up(&waited->job, drop);
            reply_error(&x->reply, req, 503);
            return true;
        }
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
