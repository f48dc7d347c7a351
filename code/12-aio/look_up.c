#include "12-aio/look_up.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "12-aio/cached.h"
#include "clock.h"
#include "open_below.h"

struct look_up {
    struct job job; /* first */
    int docroot_fd;
    void (*then)(struct found *found);
    struct found found;
    char path[];
};

static struct pool *pool;

void look_up_start(int threads, int docroot_fd)
{
    if (threads > 0)
        pool = pool_start(threads);
    cached_how(docroot_fd); /* asks the file system now, and not in the first request */
}

/* Looks at the file that open returned, or notes why there is none. */
static void look_up_opened(struct found *found, int fd)
{
    found->fd = fd;
    found->seen = time(NULL);
    found->error = fd < 0 || fstat(fd, &found->st) < 0 ? errno : 0;
    if (found->error != 0 && fd >= 0) {
        close(fd);
        found->fd = -1;
    }
}

bool look_up_now(struct found *found, int docroot_fd, const char *path)
{
    *found = (struct found){.asked = now_ms()};
    look_up_opened(found, reply_open(docroot_fd, path, open_cached));
    return found->error != EAGAIN;
}

static void look_up_run(struct job *job)
{
    struct look_up *l = (struct look_up *)job;

    l->found.asked = now_ms();
    /* No thread can use the descriptor that reply_open() keeps for a shortage: EMFILE is 503. */
    look_up_opened(&l->found, open_below(l->docroot_fd, l->path));
    if (l->found.fd >= 0 && l->then != NULL)
        l->then(&l->found);
}

static void look_up_drop(struct job *job)
{
    struct look_up *l = (struct look_up *)job;

    if (l->found.fd >= 0)
        close(l->found.fd);
    free(l->found.body);
    free(l);
}

bool look_up_begin(struct exchange *x, int docroot_fd, const char *path,
                   void (*then)(struct found *))
{
    size_t size = strlen(path) + 1;
    struct look_up *l = jobs_refused() ? NULL : calloc(1, sizeof *l + size);

    if (l == NULL)
        return false;
    l->job.conn = x->conn;
    l->job.run = look_up_run;
    l->docroot_fd = docroot_fd;
    l->then = then;
    memcpy(l->path, path, size);
    x->held = l;
    pool_run(pool, &l->job);
    return true;
}

bool look_up_take(struct exchange *x, struct found *found)
{
    struct look_up *l = x->held;

    if (l->job.state == OVER) {
        *found = l->found;
        free(l);
    } else if (job_give_up_if_lost(x, look_up_drop)) {
        *found = (struct found){.fd = -1, .error = EAGAIN}; /* 503 */
    } else {
        return false;
    }
    x->held = NULL;
    return true;
}

bool look_up_reply(struct exchange *x, const struct request *req, int docroot_fd)
{
    char path[REPLY_PATH_MAX];
    struct found found;

    if (pool == NULL ||
        reply_path(req, path) != 0) { /* -m 0: the loop waits for the disk; or no valid path */
        reply_plan(&x->reply, req, docroot_fd);
        return true;
    }
    bool here = x->held != NULL ? look_up_take(x, &found) : look_up_now(&found, docroot_fd, path);
    if (!here && (x->held != NULL || look_up_begin(x, docroot_fd, path, NULL)))
        return false;
    if (found.error == 0)
        reply_file(&x->reply, req, found.fd, &found.st, path);
    else /* EAGAIN becomes 503: no job could begin, or it was given up */
        reply_errno(&x->reply, req, found.error);
    return true;
}
