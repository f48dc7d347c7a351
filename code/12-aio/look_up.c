#include "12-aio/look_up.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "12-aio/backend.h"
#include "12-aio/cached.h"
#include "open_below.h"
#include "options.h"

#define DEFAULT_THREADS "4"
#define MOST_THREADS    1000

static struct pool *pool;
static int helper_fd = -1;

void look_up_start(const char *who, int docroot_fd)
{
    if (who == NULL)
        who = DEFAULT_THREADS;
    if (strcmp(who, "unix") == 0 || strcmp(who, "tcp") == 0) {
        helper_fd = helper_start(who[0] == 't', docroot_fd);
        who = DEFAULT_THREADS; /* for what it leaves unanswered when it dies */
    }
    int threads = options_number('m', who, 0, MOST_THREADS);
    if (threads > 0)
        pool = pool_start(threads);
    cached_how(docroot_fd);
}

int look_up_fd(void)
{
    return helper_fd;
}

void look_up_stop(void)
{
    if (helper_fd >= 0)
        helper_stop();
}

static void look(struct job *job)
{
    struct look_up *l = (struct look_up *)job;

    l->fd = open_below(l->docroot_fd, l->path);
    l->error = l->fd < 0 ? errno : 0;
    if (l->fd >= 0 && fstat(l->fd, &l->st) < 0) {
        l->error = errno;
        close(l->fd);
        l->fd = -1;
    }
}

static void drop(struct job *job)
{
    struct look_up *l = (struct look_up *)job;

    if (l->fd >= 0)
        close(l->fd);
    free(l);
}

static void hand_over(struct look_up *l)
{
    if (helper_fd < 0 || !helper_begin(l))
        pool_run(pool, &l->job);
}

/* Returns 0, or an errno. */
static int begin(struct exchange *x, const char *path, int docroot_fd)
{
    size_t size = strlen(path) + 1;
    struct look_up *l = jobs_refused() ? NULL : calloc(1, sizeof *l + size);

    if (l == NULL)
        return EAGAIN;
    l->job.conn = x->conn;
    l->job.run = look;
    l->docroot_fd = docroot_fd;
    l->fd = -1;
    l->error = LOOK_UP_NONE;
    memcpy(l->path, path, size);
    hand_over(l);
    x->held = l;
    return 0;
}

/* What is in memory is found at once; the helper is for servers that cannot tell, and is asked
 * always. Returns false if a job has begun. */
static bool find_or_begin(struct exchange *x, const struct request *req, int docroot_fd)
{
    char path[REPLY_PATH_MAX];
    struct stat st;
    int error, fd = -1;

    if (pool == NULL || reply_path(req, path) != 0) { /* reply_plan() says what is wrong */
        reply_plan(&x->reply, req, docroot_fd);
        return true;
    }
    errno = EAGAIN;
    if (helper_fd < 0)
        fd = reply_open(docroot_fd, path, open_cached);
    error = fd < 0 || fstat(fd, &st) < 0 ? errno : 0;
    if (error == EAGAIN && fd < 0 && (error = begin(x, path, docroot_fd)) == 0)
        return false;
    if (error == 0) {
        reply_file(&x->reply, req, fd, &st, path);
    } else {
        reply_errno(&x->reply, req, error);
        if (fd >= 0)
            close(fd);
    }
    return true;
}

/* Returns false if it has to be waited for. */
static bool take_result(struct exchange *x, const struct request *req, int docroot_fd)
{
    struct look_up *l = x->held;
    bool under_way = l->job.state == UNDER_WAY;

    if (under_way && !job_is_lost(&l->job))
        return false;
    if (!under_way && l->error == LOOK_UP_NONE) { /* the helper has died */
        hand_over(l);
        return false;
    }
    x->held = NULL;
    if (under_way) {
        job_give_up(&l->job, drop);
        reply_error(&x->reply, req, 503);
        return true;
    }
    if (l->fd >= 0)
        reply_file(&x->reply, req, l->fd, &l->st, l->path);
    else if (l->error != 0)
        reply_errno(&x->reply, req, l->error);
    else
        reply_plan(&x->reply, req, docroot_fd);
    free(l);
    return true;
}

bool look_up_reply(struct exchange *x, const struct request *req, int docroot_fd)
{
    bool found =
        x->held == NULL ? find_or_begin(x, req, docroot_fd) : take_result(x, req, docroot_fd);

    if (found && x->reply.fd >= 0)
        backend_opened(x->reply.fd);
    return found;
}
