/*
 * FreeBSD's sendfile(2) says how much it sent beside its result: an EAGAIN may have sent some. It
 * could send the head, too.
 */
#include <errno.h>
#include <sys/types.h>

#include <sys/socket.h>
#include <sys/uio.h>

#include "11-sendfile/send_path.h"

static ssize_t send_body(int fd, struct exchange *x, size_t most)
{
    off_t sent = 0;

    if (sendfile(x->reply.fd, fd, x->reply.offset, most, NULL, &sent, 0) < 0 && sent == 0)
        return -1;
    return (ssize_t)sent;
}

const struct body body_sendfile = {.name = "sendfile", .turn = SENDFILE_TURN, .send = send_body};
