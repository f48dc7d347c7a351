/*
 * sendfile() under other systems: each has its own order of arguments, and says how much it sent
 * beside its result, so that an EAGAIN may have sent some. It could send the head, too. OpenBSD and
 * NetBSD have none.
 */
#include "11-sendfile/send_path.h"

#include <sys/socket.h>
#include <sys/uio.h>

#if defined __FreeBSD__
static ssize_t sendfile_send_body(int fd, struct exchange *x, size_t most)
{
    off_t sent = 0;

    if (sendfile(x->reply.fd, fd, exchange_offset(x), most, NULL, &sent, 0) < 0 && sent == 0)
        return -1;
    return (ssize_t)sent;
}
#elif defined __APPLE__
/* The length goes in and comes out as what was sent, also with an error. */
static ssize_t sendfile_send_body(int fd, struct exchange *x, size_t most)
{
    off_t len = (off_t)most;

    if (sendfile(x->reply.fd, fd, exchange_offset(x), &len, NULL, 0) < 0 && len == 0)
        return -1;
    return (ssize_t)len;
}
#else
#define sendfile_send_body NULL
#endif

const struct body body_sendfile = {
    .name = "sendfile", .turn = SENDFILE_TURN, .send = sendfile_send_body};
