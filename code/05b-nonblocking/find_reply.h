/*
 * find_reply.h: from a request to its reply. 12-aio has a file of its own for it, in which others
 * may have their turn while a file is looked up.
 */
#ifndef FIND_REPLY_H
#define FIND_REPLY_H

#include <stdbool.h>

#include "05b-nonblocking/send_reply.h"

/*
 * Fills s->reply. Returns false if that has to be waited for (WANT_DISK): to be called again
 * then, with the same request.
 */
bool find_reply(struct sending *s, const struct request *req, int docroot_fd);

#endif
