/* Apple's sendfile(2): the length goes in and comes out as what was sent, also with an error. */
#include <sys/types.h>

#include <sys/socket.h>
#include <sys/uio.h>

#include "11-sendfile/send_path.h"

static ssize_t send_body(int fd, struct exchange *x, size_t most)
{
    off_t len = (off_t)most;

    if (sendfile(x->reply.fd, fd, x->reply.offset, &len, NULL, 0) < 0 && len == 0)
        return -1;
    return (ssize_t)len;
}

const struct body body_sendfile = {.name = "sendfile", .turn = SENDFILE_TURN, .send = send_body};
