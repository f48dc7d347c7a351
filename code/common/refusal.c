#include "refusal.h"

#include <stddef.h>
#include <sys/socket.h>

#include "http_parse.h"
#include "reply.h"

void serve_refusal(int fd)
{
    struct reply reply;
    char junk[HTTP_HEAD_MAX];

    /* Read what has come: if bytes were left close() would reset the connection, and the reply be
     * lost. Never wait: a server without room for a client must not wait for that client either. */
    (void)!recv(fd, junk, sizeof junk, MSG_DONTWAIT);
    reply_error(&reply, NULL, 503);
    (void)!send(fd, reply.head, reply.head_len, MSG_DONTWAIT);
    shutdown(fd, SHUT_WR);
}
