/* Head and body from two places in memory, in one call: writev(2). */
#include <sys/uio.h>

#include "11-sendfile/send_path.h"

#define FIRST (256 * 1024) /* of the body at most: a turn's budget */

static ssize_t writev_send_head(int fd, struct exchange *x, const struct body *body)
{
    struct reply *r = &x->reply;
    struct iovec parts[2] = {{r->head + x->sent, exchange_head_left(x)}};
    int used = 1;

    if (r->fd >= 0 && r->offset < r->end) {
        const char *bytes;
        off_t left = r->end - r->offset;
        ssize_t n = body->show(x, left < FIRST ? (size_t)left : FIRST, &bytes);
        if (n <= 0)
            return n;
        parts[used++] = (struct iovec){(char *)bytes, (size_t)n};
    }
    return writev(fd, parts, used);
}

const struct join join_writev = {
    .name = "writev", .needs_memory = true, .send_head = writev_send_head};
