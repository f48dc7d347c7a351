#include "http_parse.h"

#include <string.h>
#include <strings.h>

/*
 * Why so strict: if a proxy takes some bytes for a field, and the server behind it takes them for a
 * request, that request gets past the checks of the proxy (request smuggling). So everything that
 * the grammar does not allow is refused: white space before a colon, folded lines, a lone CR, two
 * Hosts, two lengths. The two liberties (LF alone, empty lines first) are ones RFC 9112 grants.
 */

/* What is found while the fields are read, and judged when all are there. */
struct framing {
    int hosts;
    bool length, coding;    /* Content-Length, Transfer-Encoding */
    bool chunked;           /* the last coding so far */
    bool unknown;           /* a coding that is not chunked */
    bool close, keep_alive; /* tokens of Connection */
};

bool slice_is(struct slice s, const char *text)
{
    return strlen(text) == s.len && strncasecmp(s.at, text, s.len) == 0;
}

/*
 * What a byte may be part of, as bits: every byte of a head is looked up here once or twice.
 * TOKEN: RFC 9110 section 5.6.2. TEXT: no control character but HTAB, as a lone CR or a NUL means
 * something else to the next program. HOST: what the name of a host may have by RFC 3986 section
 * 3.2.2 (but for the comma, which a list of hosts would have).
 */
enum { TOKEN = 1, TEXT = 2, HOST = 4 };

/* clang-format off */
static const unsigned char may_be[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, /* 00 */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* 10 */
    2, 7, 2, 3, 7, 7, 7, 7, 6, 6, 7, 7, 2, 7, 7, 2, /* 20 */
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 2, 6, 2, 6, 2, 2, /* 30 */
    2, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, /* 40 */
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 2, 2, 2, 3, 7, /* 50 */
    3, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, /* 60 */
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 2, 3, 2, 7, 0, /* 70 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* 80 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* 90 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* a0 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* b0 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* c0 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* d0 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* e0 */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, /* f0 */
};

/* clang-format on */

static bool is(unsigned what, char c)
{
    return (may_be[(unsigned char)c] & what) != 0;
}

/* Without a branch for each byte: a wrong one is very rare. */
static bool is_all(unsigned what, struct slice s)
{
    unsigned all = what;

    for (size_t i = 0; i < s.len; i++)
        all &= may_be[(unsigned char)s.at[i]];
    return all != 0;
}

static struct slice trimmed(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (at < end && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return (struct slice){at, (size_t)(end - at)};
}

/* The line at `at` without its CR LF or LF; returns where the next one starts, NULL if this one has
 * no end yet. */
static const char *next_line(const char *at, const char *end, struct slice *line)
{
    const char *lf = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;

    if (lf == NULL)
        return NULL;
    line->at = at;
    line->len = (size_t)(lf - at);
    if (line->len > 0 && lf[-1] == '\r')
        line->len--;
    return lf + 1;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    char lower = (char)(c | 0x20);

    return is_digit(c) || (lower >= 'a' && lower <= 'f');
}

/* A name, or an IPv6 address in brackets, then perhaps a port: RFC 9110 section 7.2. The name may
 * be empty. Which host it names does not matter here: all hosts get the same files. */
static bool is_authority(struct slice s)
{
    const char *at = s.at, *end = s.at + s.len;

    if (at < end && *at == '[') {
        do
            at++;
        while (at < end && (is_hex(*at) || *at == ':' || *at == '.'));
        if (at - s.at < 3 || at == end || *at++ != ']') /* "::" is the shortest */
            return false;
    }
    for (; at < end && *s.at != '[' && is(HOST, *at); at++)
        if (*at == '%' && (end - at < 3 || !is_hex(at[1]) || !is_hex(at[2])))
            return false;
    if (at < end && *at == ':')
        do
            at++;
        while (at < end && is_digit(*at));
    return at == end;
}

/* An absolute-form target, "http://host/path?query", becomes the part from its path on; without a
 * path the "/" before the host (RFC 9112 section 3.2.2). False if host and port are malformed. */
static bool strip_authority(struct slice *target)
{
    static const char *const schemes[] = {"http://", "https://"};
    const char *end = target->at + target->len;

    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(schemes[i]);
        if (target->len < n || strncasecmp(target->at, schemes[i], n) != 0)
            continue;
        const char *host = target->at + n, *at = host;
        while (at < end && *at != '/' && *at != '?')
            at++;
        if (at == host || *host == ':' || !is_authority((struct slice){host, (size_t)(at - host)}))
            return false;
        bool has_path = at < end && *at == '/';
        *target = has_path ? (struct slice){at, (size_t)(end - at)} : (struct slice){host - 1, 1};
        break;
    }
    return true;
}

static enum http_method find_method(struct slice s)
{
    static const char *const others[] = {"POST",  "PUT",     "DELETE", "CONNECT",
                                         "TRACE", "OPTIONS", "PATCH"};

    if (s.len == 3 && memcmp(s.at, "GET", 3) == 0) /* methods are case-sensitive */
        return HTTP_GET;
    if (s.len == 4 && memcmp(s.at, "HEAD", 4) == 0)
        return HTTP_HEAD;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strlen(others[i]) == s.len && memcmp(s.at, others[i], s.len) == 0)
            return HTTP_NOT_ALLOWED;
    return HTTP_UNKNOWN;
}

/* "HTTP/1.1": returns 0, or the status that refuses it. */
static int parse_version(struct slice s, int *minor)
{
    if (s.len != 8 || memcmp(s.at, "HTTP/", 5) != 0 || s.at[6] != '.')
        return 400;
    if (!is_digit(s.at[5]) || !is_digit(s.at[7]))
        return 400;
    if (s.at[5] != '1')
        return 505;
    *minor = s.at[7] == '0' ? 0 : 1;
    return 0;
}

/* method SP target SP version, with exactly one space each. Returns 0 or the status that refuses
 * it. */
static int parse_request_line(struct slice line, struct request *req)
{
    const char *end = line.at + line.len;
    const char *space = memchr(line.at, ' ', line.len);

    if (space == NULL || !is_all(TEXT, line))
        return 400;
    struct slice method = {line.at, (size_t)(space - line.at)};
    const char *target = space + 1;
    space = memchr(target, ' ', (size_t)(end - target));
    if (space == NULL || space == target || method.len == 0 || !is_all(TOKEN, method))
        return 400;
    req->line = line;
    req->target = (struct slice){target, (size_t)(space - target)};
    if (memchr(target, '\t', req->target.len) != NULL)
        return 400;
    int status = parse_version((struct slice){space + 1, (size_t)(end - space - 1)}, &req->minor);
    if (status != 400)
        req->method = find_method(method);
    return status == 0 && !strip_authority(&req->target) ? 400 : status;
}

/* Takes the first element off a list with commas; false if none is left. An element may be empty
 * (RFC 9110 section 5.6.1). */
static bool take_element(struct slice *list, struct slice *element)
{
    const char *at = list->at, *end = at + list->len;

    if (at == end)
        return false;
    const char *comma = memchr(at, ',', list->len);
    *element = trimmed(at, comma != NULL ? comma : end);
    list->at = comma != NULL ? comma + 1 : end;
    list->len = (size_t)(end - list->at);
    return true;
}

static void parse_connection(struct slice value, struct framing *f)
{
    struct slice option;

    while (take_element(&value, &option)) {
        f->close = f->close || slice_is(option, "close");
        f->keep_alive = f->keep_alive || slice_is(option, "keep-alive");
    }
}

/* Returns 0, or 400 if a coding is applied after chunked, be it chunked again: then no recipient
 * can tell where the body ends (RFC 9112 section 6.3). */
static int parse_transfer_encoding(struct slice value, struct request *req, struct framing *f)
{
    struct slice coding;

    req->has_body = f->coding = true;
    while (take_element(&value, &coding)) {
        if (coding.len == 0)
            continue;
        if (f->chunked)
            return 400;
        f->chunked = slice_is(coding, "chunked");
        f->unknown = f->unknown || !f->chunked;
    }
    return 0;
}

/* Returns 0, or 400 if it is no single number or not the first of its kind. */
static int parse_content_length(struct slice value, struct request *req, struct framing *f)
{
    bool zero = true;

    if (f->length || value.len == 0 || value.len > 18) /* 18 digits fit into 63 bits */
        return 400;
    for (size_t i = 0; i < value.len; i++) {
        if (!is_digit(value.at[i]))
            return 400;
        zero = zero && value.at[i] == '0';
    }
    f->length = true;
    req->has_body = req->has_body || !zero;
    return 0;
}

static int parse_host(struct slice value, struct framing *f)
{
    return is_authority(value) && ++f->hosts == 1 ? 0 : 400; /* RFC 9112 section 3.2 */
}

/* Where the request keeps the value of a conditional or range field; NULL for all other fields. */
static struct slice *place_of(struct slice name, struct request *req)
{
    if (slice_is(name, "If-Match"))
        return &req->if_match;
    if (slice_is(name, "If-None-Match"))
        return &req->if_none_match;
    if (slice_is(name, "If-Modified-Since"))
        return &req->if_modified_since;
    if (slice_is(name, "If-Unmodified-Since"))
        return &req->if_unmodified_since;
    if (slice_is(name, "If-Range"))
        return &req->if_range;
    return slice_is(name, "Range") ? &req->range : NULL;
}

/* A field of place_of() that comes twice counts as empty. For the two lists, If-Match and
 * If-None-Match, that would be legal (RFC 9110 section 5.3), but is rare: then no tag matches, so
 * the reply is 412 or the whole file, never a 304 that might be wrong. */
static int parse_field(struct slice line, struct request *req, struct framing *f)
{
    const char *end = line.at + line.len;
    const char *colon = memchr(line.at, ':', line.len);
    struct slice *place;

    if (colon == NULL)
        return 400;
    struct slice name = {line.at, (size_t)(colon - line.at)};
    struct slice value = trimmed(colon + 1, end);
    /* A space before the colon and a folded line are no tokens either. */
    if (name.len == 0 || !is_all(TOKEN, name) || !is_all(TEXT, value))
        return 400;
    if (slice_is(name, "Host"))
        return parse_host(value, f);
    if (slice_is(name, "Content-Length"))
        return parse_content_length(value, req, f);
    if (slice_is(name, "Transfer-Encoding"))
        return parse_transfer_encoding(value, req, f);
    if (slice_is(name, "Connection"))
        parse_connection(value, f);
    else if ((place = place_of(name, req)) != NULL)
        *place = place->at == NULL ? value : (struct slice){value.at, 0};
    return 0;
}

/* The rules that need all fields. Returns 0, 400 or 501. */
static int judge(struct request *req, const struct framing *f)
{
    if (req->minor >= 1 && f->hosts == 0)
        return 400;
    if (f->length && f->coding) /* two lengths: the classic way to smuggle a request */
        return 400;
    if (f->coding && !f->chunked) /* its body would end where the connection does */
        return 400;
    if (f->coding && req->minor == 0) /* HTTP/1.0 has no codings: section 6.1 */
        return 400;
    if (f->unknown)
        return 501;
    /* A body is never read here, so nothing after it can be found. */
    req->is_last = !req->has_body && (f->close || (req->minor == 0 && !f->keep_alive));
    req->keep_alive = !req->is_last && !req->has_body;
    req->conditional = req->if_match.at != NULL || req->if_none_match.at != NULL ||
                       req->if_modified_since.at != NULL || req->if_unmodified_since.at != NULL;
    return 0;
}

/* Skips the empty lines that may stand before a request. A CR without an LF is no line. */
static const char *skip_empty_lines(const char *at, const char *end)
{
    while (at < end && (*at == '\n' || (*at == '\r' && end - at > 1 && at[1] == '\n')))
        at += *at == '\n' ? 1 : 2;
    return at;
}

/*
 * The request line has no end yet. Bytes that cannot become one are refused at once: a client that
 * speaks TLS to this port gets an answer instead of a time-out.
 */
static int incomplete_line(const char *at, const char *end, size_t len)
{
    bool half_empty = end - at == 1 && *at == '\r';

    if (at < end && !is(TOKEN, *at) && !half_empty)
        return -400;
    return len >= HTTP_HEAD_MAX ? -414 : 0;
}

int http_parse(const char *buf, size_t len, struct request *req)
{
    if (len > HTTP_HEAD_MAX) /* a longer head is refused, whatever follows */
        len = HTTP_HEAD_MAX;
    const char *at = buf, *end = buf + len, *next;
    struct framing framing = {0};
    struct slice line;
    int status;

    memset(req, 0, sizeof *req);
    at = skip_empty_lines(at, end);
    next = next_line(at, end, &line);
    if (next == NULL)
        return incomplete_line(at, end, len);
    status = parse_request_line(line, req);
    if (status != 0)
        return -status;
    for (;;) {
        at = next;
        next = next_line(at, end, &line);
        if (next == NULL)
            return len >= HTTP_HEAD_MAX ? -431 : 0;
        if (line.len == 0)
            break;
        status = parse_field(line, req, &framing);
        if (status != 0)
            return -status;
    }
    status = judge(req, &framing);
    return status != 0 ? -status : (int)(next - buf);
}
