/* As 11-sendfile: sendfile() waits for the disk, O_NONBLOCK or not, and everybody with it. */
#include "11-sendfile/send_path.h"
#include "12-aio/backend.h"

static ssize_t send_body(int fd, struct sending *s, size_t most)
{
    return body_sendfile.send(fd, s, most);
}

const struct backend backend_sendfile = {.name = "sendfile", .send = send_body};
