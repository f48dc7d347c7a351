/*
 * TCP keeps back what does not fill a packet until the option is taken away: TCP_CORK on Linux
 * (tcp(7)), TCP_NOPUSH on the BSDs (tcp(4)). Two more system calls a reply. If it is not taken away
 * the last packet waits, 200 ms on Linux. NetBSD has none: its <netinet/tcp.h> defines TCP_NOPUSH
 * with the remark "notyet".
 */
#include <sys/socket.h>

#include "11-sendfile/cork.h"
#include "11-sendfile/send_path.h"

#ifndef __NetBSD__
static ssize_t cork_send_head(int fd, struct exchange *x, const struct body *body)
{
    (void)body;
    if (x->reply.fd >= 0 && cork(fd, true) < 0)
        return -1;
    return send(fd, x->reply.head + x->sent, exchange_head_left(x), 0);
}

static void cork_end(int fd)
{
    cork(fd, false); /* if the connection is gone, the next recv() says so */
}

const struct join join_cork = {.name = "cork", .send_head = cork_send_head, .end = cork_end};
#else
const struct join join_cork = {.name = "cork"};
#endif
