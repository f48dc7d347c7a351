/* A reply, from its first byte to its last; see reply.h. */
#include "reply.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- response ----------------------------------------------------------------------------- */

/* Response head parser; the contract is in reply.h. */

struct slice {
    const char *start;
    size_t length;
};

static bool slice_is(struct slice s, const char *word)
{
    return s.length == strlen(word) && strncasecmp(s.start, word, s.length) == 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct slice slice_trim(const char *start, const char *end)
{
    while (start < end && is_blank(*start))
        start++;
    while (start < end && is_blank(end[-1]))
        end--;
    return (struct slice){start, (size_t)(end - start)};
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1.x NNN" and then the end of the line or a space. */
static int parse_status_line(struct response *r, const char *line, size_t length)
{
    if (length < 12 || memcmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ')
        return -1;
    if (line[7] != '0' && line[7] != '1')
        return -1;
    if (!is_digit(line[9]) || !is_digit(line[10]) || !is_digit(line[11]))
        return -1;
    if (length > 12 && line[12] != ' ')
        return -1;
    r->status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
    r->content_length = -1;
    r->chunked = false;
    r->persistent = line[7] == '1';
    return r->status >= 100 && r->status <= 599 ? 0 : -1;
}

static int parse_content_length(struct response *r, struct slice value)
{
    int64_t n = 0;
    if (value.length == 0)
        return -1;
    for (size_t i = 0; i < value.length; i++) {
        if (!is_digit(value.start[i]) || n > RESPONSE_MAX_LENGTH)
            return -1;
        n = n * 10 + (value.start[i] - '0');
    }
    if (r->content_length >= 0 && r->content_length != n)
        return -1;
    r->content_length = n;
    return 0;
}

static void parse_connection(struct response *r, struct slice value)
{
    const char *end = value.start + value.length;
    for (const char *p = value.start; p < end;) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        struct slice option = slice_trim(p, comma ? comma : end);
        if (slice_is(option, "close"))
            r->persistent = false;
        else if (slice_is(option, "keep-alive"))
            r->persistent = true;
        p = comma ? comma + 1 : end;
    }
}

static int parse_field(struct response *r, const char *line, size_t length)
{
    const char *colon = memchr(line, ':', length);
    if (!colon || colon == line || is_blank(*line) || is_blank(colon[-1]))
        return -1;
    struct slice name = {line, (size_t)(colon - line)};
    struct slice value = slice_trim(colon + 1, line + length);
    char initial = (char)(*line | 0x20);

    /* Most fields are of no interest: one comparison of the initial dismisses them. */
    if (initial == 'c' && slice_is(name, "content-length"))
        return parse_content_length(r, value);
    if (initial == 'c' && slice_is(name, "connection"))
        parse_connection(r, value);
    if (initial == 't' && slice_is(name, "transfer-encoding")) {
        if (r->chunked || !slice_is(value, "chunked"))
            return -1;
        r->chunked = true;
    }
    return 0;
}

ssize_t response_parse(struct response *response, const char *data, size_t length)
{
    const char *line = data;
    const char *end = data + length;
    const char *newline;

    while (line < end && (newline = memchr(line, '\n', (size_t)(end - line)))) {
        if (newline == line || newline[-1] != '\r')
            return -1;
        size_t n = (size_t)(newline - 1 - line);
        bool first = line == data;
        if (n == 0)
            return first ? -1 : newline + 1 - data;
        if ((first ? parse_status_line(response, line, n) : parse_field(response, line, n)) < 0)
            return -1;
        line = newline + 1;
    }
    return 0;
}

/* ---- body --------------------------------------------------------------------------------- */

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

/* ---- reply -------------------------------------------------------------------------------- */

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
