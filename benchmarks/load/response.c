/* Response head parser; the contract is in response.h. */
#include "response.h"

#include <string.h>
#include <strings.h>

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
        if (!slice_is(value, "chunked"))
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
