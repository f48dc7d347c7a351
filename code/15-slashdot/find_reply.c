/*
 * From a request to its reply: out of the table of open files if it is there; else the file is
 * opened, by the loop where the kernel has all the names in memory, by a thread where they have to
 * come from the disk (12-aio/look_up.h).
 */
#include "15-slashdot/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "12-aio/cached.h"
#include "clock.h"
#include "net.h"

void transfer_start(int readers, int docroot_fd)
{
    look_up_start(LOOK_UP_THREADS, docroot_fd);
    disk_threads = pool_start(readers);
}

static bool is_small(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_size <= FILE_BODY_MOST;
}

/*
 * Reads a small file into found->body, by pread() or read_cached(). If its size has changed, on an
 * error or without memory, body stays NULL, and the file is sent from its descriptor. Returns false
 * if read_cached() did not bring all: then a thread must read it.
 */
static bool read_body(struct found *found, ssize_t (*read_by)(int, void *, size_t, off_t))
{
    char *body = malloc(FILE_BODY_MOST + 1);
    ssize_t n = -1;

    if (body != NULL)
        do
            n = read_by(found->fd, body, FILE_BODY_MOST + 1, 0);
        while (n < 0 && errno == EINTR);
    bool waits = body != NULL && read_by == read_cached && n != found->st.st_size &&
                 (n >= 0 || errno == EAGAIN);
    if (n == found->st.st_size)
        found->body = realloc(body, (size_t)n + 1);
    if (found->body == NULL)
        free(body);
    return !waits;
}

/* In a thread, which may wait. */
static void read_small_body(struct found *found)
{
    if (is_small(&found->st))
        read_body(found, pread);
}

/* Finds the file without waiting for the disk. Returns false, with EAGAIN, if that cannot be. */
static bool find_now(struct found *found, struct file *known, int docroot_fd, const char *path)
{
    if (!look_up_now(found, docroot_fd, path))
        return false;
    if (found->fd < 0 || (known != NULL && file_confirm(known, &found->st, found->asked)))
        return true;
    if (!is_small(&found->st) || read_body(found, read_cached))
        return true;
    close(found->fd);
    *found = (struct found){.fd = -1, .error = EAGAIN};
    return false;
}

/* Takes over the caller's use of f, which may be NULL. */
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

bool transfer_find(struct exchange *x, const struct request *req, int docroot_fd)
{
    char path[REPLY_PATH_MAX];
    struct found found;
    int status = reply_path(req, path);

    if (status != 0) {
        reply_error(&x->reply, req, status);
        return true;
    }
    if (x->held != NULL) {
        if (!look_up_take(x, &found))
            return false;
    } else {
        bool fresh;
        struct file *known = file_find(path, now_ms(), &fresh);
        if (fresh) {
            reply_with(x, req, known);
            return true;
        }
        bool here = find_now(&found, known, docroot_fd, path);
        if (known != NULL)
            file_release(known);
        if (!here && look_up_begin(x, docroot_fd, path, read_small_body))
            return false;
    }
    if (found.error == 0) {
        reply_with(x, req, file_enter(path, &found, now_ms()));
        return true;
    }
    /* With no answer (EAGAIN), or no descriptor for it, the file may be there. */
    if (found.error != EAGAIN && !accept_lacks_room(found.error))
        file_forget(path);
    reply_errno(&x->reply, req, found.error);
    return true;
}
