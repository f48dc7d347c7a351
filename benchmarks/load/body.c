/* Body framing; see body.h. */
#include "body.h"

void body_begin(struct body *body, const struct response *response, bool head_only)
{
    *body = (struct body){.kind = BODY_BY_LENGTH};
    if (head_only || response->status == 204 || response->status == 304)
        return;
    if (response->chunked) {
        body->kind = BODY_BY_CHUNKS;
        body->chunk = CHUNK_SIZE_FIRST;
    } else if (response->content_length >= 0) {
        body->left = (uint64_t)response->content_length;
    } else {
        body->kind = BODY_BY_CLOSE;
    }
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One byte of a chunk's size line. */
static enum body_result chunk_size_byte(struct body *body, char c)
{
    int digit = hex_value(c);
    if (digit >= 0) {
        if (body->left > RESPONSE_MAX_LENGTH)
            return BODY_BAD;
        body->left = body->left * 16 + (uint64_t)digit;
        body->chunk = CHUNK_SIZE;
        return BODY_MORE;
    }
    if (body->chunk == CHUNK_SIZE_FIRST)
        return BODY_BAD;
    if (c == '\r')
        body->chunk = CHUNK_SIZE_LF;
    else if (c == ';' || c == ' ' || c == '\t')
        body->chunk = CHUNK_EXTENSION;
    else
        return BODY_BAD;
    return BODY_MORE;
}

/* `c` must be the expected byte; then comes `next`. */
static enum body_result chunk_expect(struct body *body, char c, char expected,
                                     enum chunk_state next)
{
    if (c != expected)
        return BODY_BAD;
    body->chunk = next;
    return BODY_MORE;
}

/* One byte of framing: everything but the content of a chunk. */
static enum body_result chunk_byte(struct body *body, char c)
{
    switch (body->chunk) {
    case CHUNK_SIZE_FIRST:
    case CHUNK_SIZE:
        return chunk_size_byte(body, c);
    case CHUNK_EXTENSION:
        if (c == '\r')
            body->chunk = CHUNK_SIZE_LF;
        return BODY_MORE;
    case CHUNK_SIZE_LF:
        return chunk_expect(body, c, '\n', body->left ? CHUNK_DATA : CHUNK_TRAILER_START);
    case CHUNK_DATA_CR:
        return chunk_expect(body, c, '\r', CHUNK_DATA_LF);
    case CHUNK_DATA_LF:
        return chunk_expect(body, c, '\n', CHUNK_SIZE_FIRST);
    case CHUNK_TRAILER_START:
        body->chunk = c == '\r' ? CHUNK_LAST_LF : CHUNK_TRAILER;
        return BODY_MORE;
    case CHUNK_TRAILER:
        if (c == '\n')
            body->chunk = CHUNK_TRAILER_START;
        return BODY_MORE;
    case CHUNK_LAST_LF:
        return c == '\n' ? BODY_COMPLETE : BODY_BAD;
    case CHUNK_DATA:
        break;
    }
    return BODY_BAD;
}

/* Takes as much content as there is, up to what is left. */
static size_t take_content(struct body *body, size_t available)
{
    size_t n = available < body->left ? available : (size_t)body->left;
    body->left -= n;
    body->bytes += n;
    return n;
}

static enum body_result feed_chunks(struct body *body, const char *data, size_t length,
                                    size_t *used)
{
    size_t i = 0;
    enum body_result result = BODY_MORE;
    while (i < length && result == BODY_MORE) {
        if (body->chunk == CHUNK_DATA) {
            i += take_content(body, length - i);
            if (body->left == 0)
                body->chunk = CHUNK_DATA_CR;
        } else {
            result = chunk_byte(body, data[i++]);
        }
    }
    *used = i;
    return result;
}

enum body_result body_feed(struct body *body, const char *data, size_t length, size_t *used)
{
    switch (body->kind) {
    case BODY_BY_CHUNKS:
        return feed_chunks(body, data, length, used);
    case BODY_BY_CLOSE:
        body->bytes += length;
        *used = length;
        return BODY_MORE;
    case BODY_BY_LENGTH:
        break;
    }
    *used = take_content(body, length);
    return body->left == 0 ? BODY_COMPLETE : BODY_MORE;
}
