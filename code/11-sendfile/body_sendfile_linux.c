/*
 * sendfile(2): the kernel sends its own pages of the file. Nothing is copied to the process, and
 * nothing back.
 */
#include <sys/sendfile.h>

#include "11-sendfile/send_path.h"

static ssize_t sendfile_send_body(int fd, struct exchange *x, size_t most)
{
    off_t offset = exchange_offset(x);

    return sendfile(fd, x->reply.fd, &offset, most);
}

const struct body body_sendfile = {
    .name = "sendfile", .turn = SENDFILE_TURN, .send = sendfile_send_body};
