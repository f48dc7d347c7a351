/*
 * http_parse.h: bytes in, request out. No I/O, no allocation, no state between calls.
 * The grammar is RFC 9112 (HTTP/1.1) sections 2 to 6; the fields are RFC 9110.
 */
#ifndef HTTP_PARSE_H
#define HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_HEAD_MAX 8192 /* request line and fields together; a longer head is refused */

/* A piece of the caller's buffer; at == NULL where the request does not have it. */
struct slice {
    const char *at;
    size_t len;
};

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_NOT_ALLOWED, /* a method of RFC 9110 or 5789 that a file server does not offer */
    HTTP_UNKNOWN
};

struct request {
    enum http_method method;
    int minor;           /* of HTTP/1.x: 0 or 1 (1.2 and above are answered as 1.1) */
    bool keep_alive;     /* the client wants to use the connection again, and that is possible */
    bool is_last;        /* the client has said that it sends nothing after this request */
    bool has_body;       /* bytes of a body may follow the head; keep_alive is then false */
    bool conditional;    /* has one of the four fields for that: the reply may be 304 or 412 */
    struct slice line;   /* the request line, for the log */
    struct slice target; /* without scheme and authority, where it had them */
    struct slice if_match, if_none_match;
    struct slice if_modified_since, if_unmodified_since;
    struct slice if_range;
    struct slice range;
};

/*
 * Reads the request head at the start of buf[0..len). Returns
 *   > 0  the length of the head; *req is filled and points into buf
 *     0  the head is not complete: append bytes and call again; never if len >= HTTP_HEAD_MAX
 *   < 0  minus the status to answer with: 400, 414, 431, 501 or 505; *req has what was read
 *        before. Its method is HTTP_HEAD only after a whole request line; the answer has no body
 *        then. Where a next request would begin is not known: the connection must end after the
 *        answer, and keep_alive is false.
 *
 * Lines may end in LF alone, and empty lines before the request line are skipped (section 2.2).
 */
int http_parse(const char *buf, size_t len, struct request *req);

/* True if the slice is `text`, ignoring case (ASCII). */
bool slice_is(struct slice s, const char *text);

#endif
