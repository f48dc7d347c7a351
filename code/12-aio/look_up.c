#include "12-aio/look_up.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "12-aio/backend.h"
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
    } else {
        int threads = options_number('m', who, 0, MOST_THREADS);
        if (threads > 0)
            pool = pool_start(threads);
    }
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

/* Returns whether somebody else is looking. */
static bool begin(struct exchange *x, const struct request *req, int docroot_fd)
{
    char path[REPLY_PATH_MAX];

    if (reply_path(req, path) != 0)
        return false; /* reply_plan() says what is wrong */
    size_t size = strlen(path) + 1;
    struct look_up *l = calloc(1, sizeof *l + size);
    if (l == NULL)
        return false;
    l->job.conn = x->conn;
    l->job.run = look;
    l->docroot_fd = docroot_fd;
    l->fd = -1;
    memcpy(l->path, path, size);
    if (pool != NULL) {
        pool_run(pool, &l->job);
    } else if (!helper_begin(l)) {
        free(l);
        return false;
    }
    x->held = l;
    return true;
}

bool look_up_reply(struct exchange *x, const struct request *req, int docroot_fd)
{
    struct look_up *l = x->held;

    if (l == NULL && (pool != NULL || helper_fd >= 0) && begin(x, req, docroot_fd))
        return false;
    if (l != NULL && l->job.state == UNDER_WAY)
        return false;
    x->held = NULL;
    if (l == NULL || (l->fd < 0 && l->error == 0))
        reply_plan(&x->reply, req, docroot_fd);
    else if (l->fd >= 0)
        reply_file(&x->reply, req, l->fd, &l->st, l->path);
    else
        reply_errno(&x->reply, req, l->error);
    free(l);
    if (x->reply.fd >= 0)
        backend_opened(x->reply.fd);
    return true;
}
