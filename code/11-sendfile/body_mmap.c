/*
 * The file's pages are mapped into the process and sent from there: one copy less than read(), but
 * page tables have to be set up and torn down for each file. Only the kernel touches the mapping:
 * where the file has become shorter send() returns EFAULT. If the process touched it, SIGBUS would
 * kill it.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "11-sendfile/send_path.h"

/* Bytes of a file that are mapped at the same time; a multiple of every page size. */
#define WINDOW (512 * 1024)

struct window {
    off_t from;
    size_t len;
    char *at;
};

static void mmap_end(struct exchange *x)
{
    struct window *w = x->held;

    if (w != NULL && w->at != NULL)
        munmap(w->at, w->len);
    free(w);
}

/* Maps what lies around the next byte of the body, if it is not mapped. Returns 0, or -1 with
 * errno. */
static int mmap_move_window(struct exchange *x)
{
    struct reply *r = &x->reply;
    struct window *w = x->held;
    off_t at = exchange_offset(x);

    if (w == NULL && (x->held = w = calloc(1, sizeof *w)) == NULL)
        return -1;
    if (w->at != NULL && at >= w->from && at < w->from + (off_t)w->len)
        return 0;
    if (w->at != NULL)
        munmap(w->at, w->len);
    w->from = at - at % WINDOW;
    w->len = r->end - w->from < WINDOW ? (size_t)(r->end - w->from) : WINDOW;
    w->at = mmap(NULL, w->len, PROT_READ, MAP_SHARED, r->fd, w->from);
    if (w->at == MAP_FAILED)
        w->at = NULL;
    return w->at != NULL ? 0 : -1;
}

static ssize_t mmap_show(struct exchange *x, size_t most, const char **bytes)
{
    struct stat st;

    if (mmap_move_window(x) < 0 || fstat(x->reply.fd, &st) < 0)
        return -1;
    if ((off_t)st.st_size < x->reply.end) /* the rest of its last page would read as zeros */
        return 0;
    struct window *w = x->held;
    size_t skip = (size_t)(exchange_offset(x) - w->from);
    *bytes = w->at + skip;
    return (ssize_t)(most < w->len - skip ? most : w->len - skip);
}

static ssize_t mmap_send_body(int fd, struct exchange *x, size_t most)
{
    const char *bytes;
    ssize_t n = mmap_show(x, most, &bytes);

    return n <= 0 ? n : send(fd, bytes, (size_t)n, 0);
}

const struct body body_mmap = {
    .name = "mmap", .send = mmap_send_body, .show = mmap_show, .end = mmap_end};
