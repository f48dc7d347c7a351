/*
 * Nothing is done about the disk: the file is mapped, and send() waits for the pages that are not
 * there, and everybody with it.
 */
#include "11-sendfile/send_path.h"
#include "12-aio/backend.h"

static ssize_t send_body(int fd, struct sending *s, size_t most)
{
    return body_mmap.send(fd, s, most);
}

static void end(struct sending *s)
{
    body_mmap.end(s);
}

const struct backend backend_writev = {.name = "writev", .send = send_body, .end = end};
