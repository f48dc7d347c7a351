/*
 * sendfile(2): the kernel sends its own pages of the file. Nothing is copied to the process, and
 * nothing back.
 */
#include <sys/sendfile.h>

#include "11-sendfile/send_path.h"

/* region: sendfile */
static ssize_t send_body(int fd, struct sending *s, size_t most)
{
    off_t offset = s->reply.offset;

    return sendfile(fd, s->reply.fd, &offset, most);
}
/* endregion: sendfile */

const struct body body_sendfile = {.name = "sendfile", .turn = SENDFILE_TURN, .send = send_body};
