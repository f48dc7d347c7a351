/* Head and body together; see reply.h. */
#include "reply.h"

#include <stdlib.h>
#include <string.h>

void reply_begin(struct reply *reply, bool head_only)
{
    reply->in_body = false;
    reply->head_only = head_only;
    reply->received = 0;
    reply->partial_length = 0;
}

void reply_free(struct reply *reply)
{
    free(reply->partial);
    reply->partial = NULL;
}

/* Keeps the bytes of an incomplete head. */
static enum reply_result keep_partial(struct reply *reply, const char *data, size_t length)
{
    if (reply->partial_length + length > REPLY_MAX_HEAD)
        return REPLY_BAD_HEAD;
    if (!reply->partial && !(reply->partial = malloc(REPLY_MAX_HEAD)))
        return REPLY_NO_MEMORY;
    memcpy(reply->partial + reply->partial_length, data, length);
    reply->partial_length += length;
    return REPLY_MORE;
}

/* The head came in pieces: complete it in `partial`. *used counts the bytes of `data` only. */
static enum reply_result continue_head(struct reply *reply, const char *data, size_t length,
                                       size_t *used)
{
    size_t before = reply->partial_length;
    size_t room = REPLY_MAX_HEAD - before;
    enum reply_result kept = keep_partial(reply, data, length < room ? length : room);
    if (kept != REPLY_MORE)
        return kept;
    ssize_t head = response_parse(&reply->response, reply->partial, reply->partial_length);
    if (head < 0 || (head == 0 && reply->partial_length == REPLY_MAX_HEAD))
        return REPLY_BAD_HEAD;
    *used = head > 0 ? (size_t)head - before : length;
    reply->partial_length = head > 0 ? 0 : reply->partial_length;
    return head > 0 ? REPLY_COMPLETE : REPLY_MORE;
}

static enum reply_result feed_head(struct reply *reply, const char *data, size_t length,
                                   size_t *used)
{
    if (reply->partial_length > 0)
        return continue_head(reply, data, length, used);
    ssize_t head = response_parse(&reply->response, data, length);
    if (head < 0 || head > REPLY_MAX_HEAD) /* the limit must not depend on the segments */
        return REPLY_BAD_HEAD;
    *used = head > 0 ? (size_t)head : length;
    return head > 0 ? REPLY_COMPLETE : keep_partial(reply, data, length);
}

/* Parses heads until the final one: 100 to 199 (but for 101) only announce it. */
static enum reply_result skip_to_body(struct reply *reply, const char **data, size_t *length)
{
    while (!reply->in_body && *length > 0) {
        size_t used = 0;
        enum reply_result result = feed_head(reply, *data, *length, &used);
        if (result != REPLY_COMPLETE)
            return result;
        *data += used;
        *length -= used;
        if (reply->response.status == 101)
            return REPLY_BAD_HEAD;
        if (reply->response.status >= 200) {
            body_begin(&reply->body, &reply->response, reply->head_only);
            reply->in_body = true;
        }
    }
    return reply->in_body ? REPLY_COMPLETE : REPLY_MORE;
}

enum reply_result reply_feed(struct reply *reply, const char *data, size_t length)
{
    size_t used = 0;
    reply->received += length;
    enum reply_result head = skip_to_body(reply, &data, &length);
    if (head != REPLY_COMPLETE)
        return head;
    switch (body_feed(&reply->body, data, length, &used)) {
    case BODY_BAD:
        return REPLY_BAD_BODY;
    case BODY_COMPLETE:
        return used == length ? REPLY_COMPLETE : REPLY_EXCESS;
    case BODY_MORE:
        break;
    }
    return REPLY_MORE;
}

enum reply_result reply_end(const struct reply *reply)
{
    return reply->in_body && reply->body.kind == BODY_BY_CLOSE ? REPLY_COMPLETE : REPLY_SHORT;
}
