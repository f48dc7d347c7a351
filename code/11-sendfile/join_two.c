/*
 * The obvious way: the head, then the body. Two calls, and two packets: the head is on its way
 * before TCP can know that more will follow. And with Nagle's algorithm (RFC 896; RFC 9293 section
 * 3.7.4), which every socket has unless it is switched off, the second packet waits until the first
 * is acknowledged. A client may put that off for 40 ms and more. tcp_listen() switches Nagle off;
 * here it is on again, to show what happens to a server that neither joins its packets nor switches
 * Nagle off.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "11-sendfile/send_path.h"

static void two_begin(int fd)
{
    int off = 0;

    /* It fails if the connection is gone: recv() will say so. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &off, sizeof off);
}

static ssize_t two_send_head(int fd, struct exchange *x, const struct body *body)
{
    (void)body;
    return send(fd, x->reply.head + x->sent, exchange_head_left(x), 0);
}

const struct join join_two = {.name = "two", .begin = two_begin, .send_head = two_send_head};
