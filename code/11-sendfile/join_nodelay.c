/*
 * As join_two.c, but without Nagle's algorithm: TCP_NODELAY, which the connection has inherited
 * from the listening socket (tcp_listen()). The second packet does not wait. There are still two.
 */
#include "11-sendfile/send_path.h"

static ssize_t nodelay_send_head(int fd, struct exchange *x, const struct body *body)
{
    return join_two.send_head(fd, x, body);
}

const struct join join_nodelay = {.name = "nodelay", .send_head = nodelay_send_head};
