/*
 * MSG_MORE (send(2)): TCP keeps the head back until the next send. A cork that lasts for one call
 * and costs none. Linux only.
 */
#include <sys/socket.h>

#include "11-sendfile/send_path.h"

#ifdef __linux__
static ssize_t more_send_head(int fd, struct exchange *x, const struct body *body)
{
    struct reply *r = &x->reply;
    bool follows = r->fd >= 0 && r->offset < r->end;

    (void)body;
    return send(fd, r->head + x->sent, exchange_head_left(x), follows ? MSG_MORE : 0);
}

const struct join join_more = {.name = "more", .send_head = more_send_head};
#else
const struct join join_more = {.name = "more"};
#endif
