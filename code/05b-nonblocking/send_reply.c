#include "05b-nonblocking/send_reply.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHUNK 65536

/*
 * Head and the first of the body share a buffer, so that they share a packet. The buffer belongs to
 * no connection: what the socket does not take is read from the file once more, out of the page
 * cache, when it does.
 */
enum sent send_reply(int fd, struct sending *s, long *budget)
{
    /* solution: send */
    static char chunk[CHUNK];
    struct reply *r = &s->reply;

    while (s->head_sent < r->head_len || (r->fd >= 0 && r->offset < r->end)) {
        if (*budget <= 0)
            return SENT_BUDGET;
        size_t head = r->head_len - s->head_sent, len = head;
        memcpy(chunk, r->head + s->head_sent, head);
        if (r->fd >= 0) {
            size_t room = sizeof chunk - head;
            off_t left = r->end - r->offset;
            ssize_t n =
                pread(r->fd, chunk + head, left < (off_t)room ? (size_t)left : room, r->offset);
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0) /* the promised length cannot be kept: only the connection's end says so */
                return SENT_FAILED;
            len += (size_t)n;
        }
        ssize_t n = send(fd, chunk, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? SENT_BLOCKED : SENT_FAILED;
        size_t of_head = (size_t)n < head ? (size_t)n : head;
        s->head_sent += of_head;
        r->offset += n - (ssize_t)of_head;
        *budget -= n;
    }
    return SENT_ALL;
    /* endsolution: send */
}

void send_end(struct sending *s)
{
    if (s->reply.fd >= 0)
        close(s->reply.fd);
}
