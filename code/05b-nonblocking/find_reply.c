#include "05b-nonblocking/find_reply.h"

bool find_reply(struct sending *s, const struct request *req, int docroot_fd)
{
    reply_plan(&s->reply, req, docroot_fd);
    return true;
}
