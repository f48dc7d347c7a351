#include "13-uring/sending.h"

#include <stdlib.h>
#include <string.h>

#include "stop.h"

struct sending *sending_new(const struct request *req, int used)
{
    struct sending *out = calloc(1, sizeof *out);

    if (out == NULL)
        return NULL;
    out->request = *req;
    out->request.keep_alive = req->keep_alive && !stopping;
    out->used = used;
    out->file = -1;
    return out;
}

bool sending_path(struct sending *out, char path[REPLY_PATH_MAX])
{
    int status = out->used < 0 ? -out->used : reply_path(&out->request, path);

    if (status != 0)
        reply_error(&out->reply, &out->request, status);
    return status == 0;
}

void sending_found(struct sending *out, const char *path)
{
    struct stat st = {
        .st_mode = out->found.stx_mode,
        .st_size = (off_t)out->found.stx_size,
        .st_mtime = (time_t)out->found.stx_mtime.tv_sec,
    };

    reply_found(&out->reply, &out->request, out->file, &st, path);
    out->begin = out->reply.offset;
}

void sending_failed(struct sending *out, int error)
{
    reply_errno(&out->reply, &out->request, error);
}

size_t sending_piece(struct sending *out, char *piece, size_t room)
{
    struct reply *r = &out->reply;
    size_t head = r->head_len - out->head_sent, n = 0;

    memcpy(piece, r->head + out->head_sent, head);
    if (r->fd >= 0)
        n = r->end - r->offset < (off_t)(room - head) ? (size_t)(r->end - r->offset) : room - head;
    out->len = head + n;
    out->of_file = n;
    return n;
}

bool sending_sent(struct sending *out, size_t n)
{
    struct reply *r = &out->reply;
    size_t head = r->head_len - out->head_sent, of_head = n < head ? n : head;

    out->head_sent += of_head;
    r->offset += (off_t)(n - of_head);
    out->step += (long)n;
    return out->head_sent == r->head_len && (r->fd < 0 || r->offset == r->end);
}

bool sending_leaves_unread(const struct sending *out, size_t have)
{
    return have > 0 || (out->used > 0 && out->request.has_body);
}
