/*
 * As join_two.c, without Nagle's algorithm (RFC 896; RFC 9293 section 3.7.4): the second packet
 * does not wait until the first is acknowledged, which a client may put off for 40 ms and more.
 * There are still two.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "11-sendfile/send_path.h"

static void begin(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
               sizeof on); /* a socket that is no more says so soon */
}

static ssize_t send_head(int fd, struct exchange *x, const struct body *body)
{
    return join_two.send_head(fd, x, body);
}

const struct join join_nodelay = {.name = "nodelay", .begin = begin, .send_head = send_head};
