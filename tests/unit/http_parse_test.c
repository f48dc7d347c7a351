/*
 * http_parse_test: the parser alone, with inputs no server sees whole. Every input is a heap block
 * of exactly its size, so that the sanitized build finds a read beyond its end.
 *
 * Run: build/asan/http_parse_test
 */
#include "http_parse.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define ROUNDS 20000

/* The text may hold NUL. "expected": minus a status, 0 for incomplete, or the whole text. */
#define TEXT(text)  (text), sizeof(text) - 1
#define HOST        "\r\nHost: x\r\n\r\n"
#define LINE(line)  TEXT(line HOST)
#define FIELD(text) TEXT("GET / HTTP/1.1\r\nHost: x\r\n" text "\r\n\r\n")
#define HOSTS(text) TEXT("GET / HTTP/1.1\r\n" text "\r\n\r\n")
#define WHOLE       1

static const struct {
    const char *text;
    size_t len;
    int expected;
} cases[] = {
    {LINE("GET / HTTP/1.1"), WHOLE},
    {TEXT("GET / HTTP/1.0\r\n\r\n"), WHOLE},
    {TEXT("GET / HTTP/1.1\nHost: x\n\n"), WHOLE},
    {LINE("\r\n\r\nGET / HTTP/1.1"), WHOLE},
    {LINE("GET / HTTP/1.2"), WHOLE},
    {LINE("GET / HTTP/1.9"), WHOLE},
    {LINE("GET /\x80\xff\"<\\^| HTTP/1.1"), WHOLE},
    {LINE("G!#$%&'*+-.^_`|~09Z / HTTP/1.1"), WHOLE},
    {TEXT("GET / HTTP/1.1\r\nhOST:x\r\ncONNECTION:\t close \t\r\nx-empty:\r\n\r\n"), WHOLE},
    {FIELD("Content-Length: 5"), WHOLE},
    {FIELD("Content-Length: 0"), WHOLE},
    {FIELD("Content-Length: 999999999999999999"), WHOLE},
    {FIELD("X: \t\x80\xff~"), WHOLE},

    {TEXT(""), 0},
    {TEXT("\r\n"), 0},
    {TEXT("\n\r"), 0},
    {TEXT("GET / HTTP/1.1\r\nHost: x\r\n"), 0},
    {TEXT("GET / HTTP/1.1\r\nHost: x\r\n\r"), 0},
    {TEXT("G(T"), 0},

    /* ---- the request line */
    {LINE("\rGET / HTTP/1.1"), -400},
    {LINE("\r\n\r\r\nGET / HTTP/1.1"), -400},
    {TEXT("\r\r"), -400},
    {TEXT("\rG"), -400},
    {TEXT("GET\r\n\r\n"), -400},
    {TEXT("GET /\r\n\r\n"), -400},
    {LINE("GET HTTP/1.1"), -400},
    {LINE("GET  HTTP/1.1"), -400},
    {LINE("GET  / HTTP/1.1"), -400},
    {LINE("GET /  HTTP/1.1"), -400},
    {LINE("GET\t/\tHTTP/1.1"), -400},
    {LINE("GET /\ta HTTP/1.1"), -400},
    {LINE("GET / a HTTP/1.1"), -400},
    {LINE(" GET / HTTP/1.1"), -400},
    {LINE("GET / HTTP/1.1 "), -400},
    {LINE("GET / HTTP/1.1 x"), -400},
    {LINE("/ HTTP/1.1"), -400},
    {LINE("G(T / HTTP/1.1"), -400},
    {LINE("GET / HTTP/x.y"), -400},
    {LINE("GET / HTTP/11"), -400},
    {LINE("GET / HTTP/1."), -400},
    {LINE("GET / HTTP/1.x"), -400},
    {LINE("GET / HTTP/1./"), -400},
    {LINE("GET / HTTP/x.1"), -400},
    {LINE("GET / HTTP//.1"), -400},
    {LINE("GET / HTTP/1.1.1"), -400},
    {LINE("GET / HTTP/1.10"), -400},
    {LINE("GET / HTTP/1/1"), -400},
    {LINE("GET / HTTP/+1.1"), -400},
    {LINE("GET / http/1.1"), -400},
    {LINE("GET / HTTPS/1.1"), -400},
    {LINE("GET /\x01 HTTP/1.1"), -400},
    {LINE("GET /\x7f HTTP/1.1"), -400},
    {LINE("GET /\0.html HTTP/1.1"), -400},
    {LINE("GET /\rx HTTP/1.1"), -400},
    {TEXT("GET / HTTP/1.1\rHost: x\r\r\n\r\n"), -400},
    {TEXT("\x16\x03\x01\0\xc8\x01\0\0\xc4\x03\x03 a TLS client"), -400},
    {TEXT("\0\0\0\0"), -400},
    {LINE("GET / HTTP/0.0"), -505},
    {LINE("GET / HTTP/0.9"), -505},
    {LINE("GET / HTTP/2.0"), -505},
    {LINE("GET / HTTP/9.9"), -505},
    {TEXT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), -505},

    /* ---- fields */
    {FIELD("no colon"), -400},
    {FIELD(": value"), -400},
    {FIELD("Name : value"), -400},
    {FIELD("Na(me: v"), -400},
    {FIELD("N\xc3\xa4me: v"), -400},
    {FIELD("Name: a\r\n b"), -400},
    {FIELD(" folded"), -400},
    {TEXT("GET / HTTP/1.1\r\n Host: x\r\nHost: x\r\n\r\n"), -400},
    {FIELD("Name: a\0b"), -400},
    {FIELD("Name: a\rb"), -400},
    {FIELD("Name: a\x7f"), -400},

    /* ---- Host */
    {HOSTS("Host:"), WHOLE},
    {HOSTS("Host: x:80"), WHOLE},
    {HOSTS("Host: [::1]:80"), WHOLE},
    {HOSTS("Host: [::]"), WHOLE},
    {HOSTS("Host: xn--bcher-kva.example"), WHOLE},
    {HOSTS("Host: 1.2.3.4"), WHOLE},
    {HOSTS("X: y"), -400},
    {HOSTS("Host : x"), -400},
    {HOSTS("Host: x\r\nHost: x"), -400},
    {HOSTS("Host: x\r\nX: 1\r\nhOsT: y"), -400},
    {HOSTS("Host: a b"), -400},
    {HOSTS("Host: a/b"), -400},
    {HOSTS("Host: a@b"), -400},
    {HOSTS("Host: a, b"), -400},
    {HOSTS("Host: a?b"), -400},
    {HOSTS("Host: a#b"), -400},
    {HOSTS("Host: <a>"), -400},
    {HOSTS("Host: \"a\""), -400},
    {HOSTS("Host: a:"), WHOLE},
    {HOSTS("Host: :80"), WHOLE},
    {HOSTS("Host: a%41"), WHOLE},
    {HOSTS("Host: a%2D_~!$&'()*+;=b:1"), WHOLE},
    {HOSTS("Host: [1:2::ffFF:1.2.3.4]"), WHOLE},
    {HOSTS("Host: a:b"), -400},
    {HOSTS("Host: a:80b"), -400},
    {HOSTS("Host: a:-1"), -400},
    {HOSTS("Host: a:80:81"), -400},
    {HOSTS("Host: ::1"), -400},
    {HOSTS("Host: [::1"), -400},
    {HOSTS("Host: [::1]a"), -400},
    {HOSTS("Host: [::1]]"), -400},
    {HOSTS("Host: [a]b]"), -400},
    {HOSTS("Host: []"), -400},
    {HOSTS("Host: [:]"), -400},
    {HOSTS("Host: [g]"), -400},
    {HOSTS("Host: ["), -400},
    {HOSTS("Host: a]"), -400},
    {HOSTS("Host: a[::1]"), -400},
    {HOSTS("Host: a%"), -400},
    {HOSTS("Host: a%4"), -400},
    {HOSTS("Host: a%4g"), -400},
    {HOSTS("Host: a%g4"), -400},
    {HOSTS("Host: a\\b"), -400},
    {HOSTS("Host: a|b"), -400},
    {HOSTS("Host: a^b"), -400},
    {HOSTS("Host: `a`"), -400},
    {HOSTS("Host: {a}"), -400},
    {HOSTS("Host: b\xc3\xbc"
           "cher"),
     -400},

    /* ---- the authority of a target is judged as Host is, but is not empty */
    {LINE("GET http://h/a HTTP/1.1"), WHOLE},
    {LINE("GET HTTPS://[::1]:80?q HTTP/1.1"), WHOLE},
    {LINE("GET http://h: HTTP/1.1"), WHOLE},
    {LINE("GET http://h#/a HTTP/1.1"), -400},
    {LINE("GET http://h,i/a HTTP/1.1"), -400},
    {LINE("GET http://<h>/a HTTP/1.1"), -400},
    {LINE("GET http://h:i/a HTTP/1.1"), -400},
    {LINE("GET http://\"h\"/a HTTP/1.1"), -400},
    {LINE("GET http://i@h/a HTTP/1.1"), -400},
    {LINE("GET http://h\\i/a HTTP/1.1"), -400},
    {LINE("GET http://h%/a HTTP/1.1"), -400},
    {LINE("GET http://[h/a HTTP/1.1"), -400},
    {LINE("GET http:///a HTTP/1.1"), -400},
    {LINE("GET http://:80/a HTTP/1.1"), -400},
    {LINE("GET http://?a HTTP/1.1"), -400},
    {LINE("GET http:// HTTP/1.1"), -400},
    {LINE("POST http://h,i/a HTTP/1.1"), -400},
    {TEXT("GET http://x/ HTTP/1.1\r\n\r\n"), -400},
    {TEXT("GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n"), -400},

    /* ---- the length of a body */
    {FIELD("Content-Length: -1"), -400},
    {FIELD("Content-Length: +5"), -400},
    {FIELD("Content-Length: 5 5"), -400},
    {FIELD("Content-Length: 0x5"), -400},
    {FIELD("Content-Length: 5a"), -400},
    {FIELD("Content-Length: 1e3"), -400},
    {FIELD("Content-Length:"), -400},
    {FIELD("Content-Length: ,"), -400},
    {FIELD("Content-Length: 5, 6"), -400},
    {FIELD("Content-Length: 1000000000000000000"), -400},
    {FIELD("Content-Length: 18446744073709551616"), -400},
    {FIELD("Content-Length: 5\r\nContent-Length: 5"), -400},
    {FIELD("Content-Length: 5\r\nContent-Length: 6"), -400},
    {FIELD("Content-Length: 0\r\nContent-Length: 70"), -400},
    {FIELD("Content-Length: 5\r\nTransfer-Encoding: chunked"), -400},
    {FIELD("Transfer-Encoding: chunked\r\nContent-Length: 5"), -400},
    {FIELD("Transfer-Encoding: chunked\r\nContent-Length: 0"), -400},
    {FIELD("Transfer-Encoding: gzip"), -400},
    {FIELD("Transfer-Encoding:"), -400},
    {FIELD("Transfer-Encoding: xchunked"), -400},
    {FIELD("Transfer-Encoding: chunked;q=1"), -400},
    {FIELD("Transfer-Encoding: chunked, gzip"), -400},
    {FIELD("Transfer-Encoding: chunked, identity"), -400},
    {FIELD("Transfer-Encoding: chunked, chunked"), -400},
    {FIELD("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"), -400},
    {TEXT("GET / HTTP/1.0\r\nTransfer-Encoding: gzip\r\n\r\n"), -400},
    {TEXT("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), -400},
    {TEXT("GET / HTTP/1.0\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), -400},
    {FIELD("Transfer-Encoding: gzip, chunked, gzip"), -400},
    {FIELD("Transfer-Encoding: gzip, chunked\r\nContent-Length: 5"), -400},
    {FIELD("Transfer-Encoding: chunked"), WHOLE},
    {FIELD("Transfer-Encoding: CHUNKED"), WHOLE},
    {FIELD("Transfer-Encoding: ,chunked ,"), WHOLE},
    {FIELD("Transfer-Encoding: gzip, chunked"), -501},
    {FIELD("Transfer-Encoding: bogus, chunked"), -501},
    {FIELD("Transfer-Encoding: identity, chunked"), -501},
    {FIELD("Transfer-Encoding: gzip;q=1, chunked"), -501},
    {FIELD("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked"), -501},
};

/* Parses a heap copy that ends where the text ends; and first one that has more behind it, so that
 * who looks there is found without a sanitizer, too. */
static int parse_exact(const char *text, size_t len, struct request *req)
{
    static char *copy;
    static char longer[2 * HTTP_HEAD_MAX + 8];

    memcpy(longer, text, len);
    memcpy(longer + len, "\n\n\n", 4);
    int with_more = http_parse(longer, len, req);

    free(copy); /* the request of the last call pointed into it */
    copy = malloc(len > 0 ? len : 1);
    if (copy == NULL)
        abort();
    memcpy(copy, text, len);
    int got = http_parse(len > 0 ? copy : copy + 1, len, req);
    return got == with_more ? got : -1;
}

static void check_cases(void)
{
    struct request req;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len = cases[i].len;
        int expected = cases[i].expected == WHOLE ? (int)len : cases[i].expected;
        int got = parse_exact(cases[i].text, len, &req);
        tap_ok(got == expected, "\"%s\": %d, expected %d", tap_quote(cases[i].text, len), got,
               expected);
    }
}

/* A request that is not complete is neither taken for one nor refused; what follows one does not
 * matter. */
static void check_prefixes(const char *text)
{
    struct request req;
    size_t len = strlen(text);
    char longer[512];
    int bad = 0;

    for (size_t n = 0; n < len; n++)
        bad += parse_exact(text, n, &req) != 0;
    tap_ok(bad == 0, "\"%s\": %d of its beginnings are not 0", tap_quote(text, len), bad);
    snprintf(longer, sizeof longer, "%sGET", text);
    int got = parse_exact(longer, strlen(longer), &req);
    tap_ok(got == (int)len, "\"%s\" with more behind it: %d, expected %zu", tap_quote(text, len),
           got, len);
}

static bool same(struct slice s, const char *text)
{
    return text == NULL ? s.at == NULL : s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static void check_fields(void)
{
    static const char text[] = "HEAD /a?b HTTP/1.0\r\n"
                               "Connection: foo , Keep-Alive\r\n"
                               "RANGE:\t bytes=0-1 \t\r\n"
                               "if-range: r\r\n"
                               "If-Match: a\r\nIf-None-Match: n\r\n"
                               "If-Modified-Since: m\r\nIf-Unmodified-Since: u\r\n\r\n";
    struct request req;
    int got = parse_exact(text, sizeof text - 1, &req);

    tap_ok(got == (int)sizeof text - 1, "a request with all fields: %d", got);
    tap_ok(req.method == HTTP_HEAD, "method %d", req.method);
    tap_ok(req.minor == 0 && req.keep_alive && !req.has_body, "minor %d, keep-alive %d, body %d",
           req.minor, req.keep_alive, req.has_body);
    tap_ok(same(req.line, "HEAD /a?b HTTP/1.0"), "line \"%s\"",
           tap_quote(req.line.at, req.line.len));
    tap_ok(same(req.target, "/a?b"), "target \"%s\"", tap_quote(req.target.at, req.target.len));
    tap_ok(same(req.range, "bytes=0-1"), "range \"%s\"", tap_quote(req.range.at, req.range.len));
    tap_ok(same(req.if_range, "r") && same(req.if_match, "a") && same(req.if_none_match, "n") &&
               same(req.if_modified_since, "m") && same(req.if_unmodified_since, "u"),
           "If-Range, If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since");
}

/* 15-slashdot has a reply ready for those that are not. */
static void check_conditional(const char *field, bool conditional)
{
    struct request req;
    char text[128];
    int len = snprintf(text, sizeof text, "GET / HTTP/1.0\r\n%s: x\r\n\r\n", field);
    int got = parse_exact(text, (size_t)len, &req);

    tap_ok(got == len && req.conditional == conditional, "%s: conditional %d", field,
           req.conditional);
}

/* What is answered without a body must be a request line that says HEAD. */
static void check_refused(const char *text, int expected, enum http_method method)
{
    struct request req;
    int got = parse_exact(text, strlen(text), &req);

    tap_ok(got == expected && req.method == method && !req.keep_alive && !req.is_last,
           "\"%s\": %d, method %d, keep-alive %d", tap_quote(text, strlen(text)), got, req.method,
           req.keep_alive);
}

static void check_connection(const char *version, const char *fields, bool keep_alive, bool body)
{
    struct request req;
    char text[512];

    snprintf(text, sizeof text, "GET / HTTP/%s\r\nHost: x\r\n%s\r\n", version, fields);
    int got = parse_exact(text, strlen(text), &req);
    bool is_last = !keep_alive && !body; /* with a body more than the request may come */
    tap_ok(got > 0 && req.keep_alive == keep_alive && req.has_body == body &&
               req.is_last == is_last,
           "%s \"%s\": %d, keep-alive %d, body %d", version, tap_quote(fields, strlen(fields)), got,
           req.keep_alive, req.has_body);
}

/* Of the absolute form the part from the path on is kept. */
static void check_target(const char *target, const char *kept)
{
    struct request req;
    char text[128];
    int len = snprintf(text, sizeof text, "GET %s HTTP/1.1" HOST, target);
    int got = parse_exact(text, (size_t)len, &req);

    tap_ok(got == len && same(req.target, kept), "target %s: %d, \"%s\"", target, got,
           tap_quote(req.target.at, req.target.len));
}

/* A field that may stand once and stands twice is as good as none. */
static void check_twice(void)
{
    static const char *const names[] = {
        "Range",        "If-Range", "If-Modified-Since", "If-Match", "If-Unmodified-Since",
        "If-None-Match"};
    char text[256];
    struct request req;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int len = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: x\r\n%s: a\r\n%s: b\r\n\r\n",
                           names[i], names[i]);
        int got = parse_exact(text, (size_t)len, &req);
        const struct slice all[] = {req.range,
                                    req.if_range,
                                    req.if_modified_since,
                                    req.if_match,
                                    req.if_unmodified_since,
                                    req.if_none_match};
        tap_ok(got == len && same(all[i], ""), "two of %s: \"%s\"", names[i],
               tap_quote(all[i].at, all[i].len));
    }
}

/* How it is parsed with c in the place of \1: WHOLE, or minus a status. */
static int with_byte(const char *text, int c)
{
    struct request req;
    char copy[64];
    size_t len = strlen(text);

    memcpy(copy, text, len);
    *(char *)memchr(copy, '\1', len) = (char)c;
    int got = parse_exact(copy, len, &req);
    return got == (int)len ? WHOLE : got;
}

/* Each byte in the place of one of a method, a target, a name, a value and a host. */
static void check_bytes(void)
{
    int wrong = 0, last = 0;

    for (int c = 0; c < 256; c++) {
        bool word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        bool token = word || (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
        bool host = word || (c != 0 && strchr("-._~!$&'()*+;=", c) != NULL);
        bool visible = c > ' ' && c != 0x7f;
        int before = wrong;
        wrong += with_byte("G\1T / HTTP/1.1" HOST, c) != (token ? WHOLE : -400);
        wrong += with_byte("GET /\1 HTTP/1.1" HOST, c) != (visible ? WHOLE : -400);
        wrong +=
            with_byte("GET / HTTP/1.0\r\nX\1Y: v\r\n\r\n", c) != (token || c == ':' ? WHOLE : -400);
        wrong += with_byte("GET / HTTP/1.0\r\nX: a\1b\r\n\r\n", c) !=
                 (visible || c == ' ' || c == '\t' ? WHOLE : -400);
        wrong += with_byte("GET / HTTP/1.0\r\nHost: a\1b\r\n\r\n", c) != (host ? WHOLE : -400);
        last = wrong > before ? c : last;
    }
    tap_ok(wrong == 0, "each byte in five places: %d wrong, the last is \\x%02x", wrong, last);
}

/* Methods are words, letter by letter. */
static void check_method(const char *method, enum http_method expected)
{
    struct request req;
    char text[128];
    int len = snprintf(text, sizeof text, "%s / HTTP/1.1" HOST, method);
    int got = parse_exact(text, (size_t)len, &req);

    tap_ok(got == len && req.method == expected, "%s: %d, method %d", method, got, req.method);
}

static void check_methods(void)
{
    static const char *const known[] = {"POST",  "PUT",     "DELETE", "CONNECT",
                                        "TRACE", "OPTIONS", "PATCH"};
    static const char *const unknown[] = {"FOO", "get",    "Get",      "GETT", "GE",
                                          "HEA", "HEADER", "M-SEARCH", "head", "POS"};

    check_method("GET", HTTP_GET);
    check_method("HEAD", HTTP_HEAD);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        check_method(known[i], HTTP_NOT_ALLOWED);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        check_method(unknown[i], HTTP_UNKNOWN);
}

/* A full buffer without the end of the request line, and one byte less. */
static void check_long_line(void)
{
    static char text[HTTP_HEAD_MAX];
    struct request req;

    memset(text, 'a', sizeof text);
    memcpy(text, "GET /", 5);
    int got = parse_exact(text, sizeof text, &req);
    tap_ok(got == -414, "a request line of HTTP_HEAD_MAX bytes: %d", got);
    got = parse_exact(text, sizeof text - 1, &req);
    tap_ok(got == 0, "a request line that may yet end: %d", got);
}

/* Heads of every length around the limit are served or refused as too long: never "send more". */
static void check_limit(void)
{
    static char text[2 * HTTP_HEAD_MAX];
    int wrong = 0, stuck = 0, split = 0;

    for (size_t total = HTTP_HEAD_MAX - 40; total < HTTP_HEAD_MAX + 40; total++) {
        struct request req;
        int n = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: x\r\nX: ");
        memset(text + n, 'v', total - (size_t)n - 4);
        memcpy(text + total - 4, "\r\n\r\n", 4);
        int got = parse_exact(text, total, &req);
        wrong += got != (total <= HTTP_HEAD_MAX ? (int)total : -431);
        stuck += total > HTTP_HEAD_MAX && parse_exact(text, HTTP_HEAD_MAX, &req) == 0;
        text[HTTP_HEAD_MAX] = '\0'; /* no part of a field, but behind the limit */
        split += total > HTTP_HEAD_MAX && parse_exact(text, total, &req) != -431;
    }
    tap_ok(split == 0, "what lies behind the limit is looked at %d times", split);
    tap_ok(wrong == 0, "heads around HTTP_HEAD_MAX: %d wrong", wrong);
    tap_ok(stuck == 0, "a full buffer without the end of a head: %d times \"send me more\"", stuck);
}

static uint32_t random_state = 2003;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) % n;
}

static bool within(struct slice s, const char *buf, size_t len)
{
    return s.at == NULL || (s.at >= buf && s.at + s.len <= buf + len);
}

static bool known(int got, size_t len)
{
    return got == 0 || got == -400 || got == -414 || got == -431 || got == -501 || got == -505 ||
           (got > 0 && (size_t)got <= len);
}

/*
 * Cut and changed requests: the result is one of those the header names, the slices lie in the
 * buffer, and an answer, once given, does not change with the bytes that follow.
 */
static void check_mutants(void)
{
    static const char seed[] = "GET /path?q HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
                               "Connection: close\r\nRange: bytes=0-1\r\n\r\n";
    static const char bytes[] = "\r\n\r\n \t:,/%?HTTP1.0\0\x7f\xff";
    int unknown = 0, outside = 0, changed = 0;

    for (int round = 0; round < ROUNDS; round++) {
        size_t len = sizeof seed - 1;
        char *text = malloc(len);
        struct request req;
        if (text == NULL)
            abort();
        memcpy(text, seed, len);
        for (uint32_t n = 1 + random_below(4); n > 0; n--)
            text[random_below((uint32_t)len)] = bytes[random_below(sizeof bytes - 1)];
        int whole = http_parse(text, len, &req);
        unknown += !known(whole, len);
        outside += !within(req.line, text, len) || !within(req.target, text, len) ||
                   !within(req.range, text, len) || !within(req.if_range, text, len) ||
                   !within(req.if_modified_since, text, len);
        int part = parse_exact(text, random_below((uint32_t)len + 1), &req);
        changed += part != 0 && part != whole;
        free(text);
    }
    tap_ok(unknown == 0, "%d of %d mutants gave a result that the header does not name", unknown,
           ROUNDS);
    tap_ok(outside == 0, "%d of %d mutants gave a slice outside the buffer", outside, ROUNDS);
    tap_ok(changed == 0, "%d of %d mutants got another answer with more bytes", changed, ROUNDS);
}

int main(void)
{
    check_cases();
    check_prefixes("GET /hello HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\n\r\n");
    check_prefixes("HEAD / HTTP/1.0\r\n\r\n");
    check_prefixes("\r\n\n\r\nGET / HTTP/1.1\nHost: x\n\n");
    check_fields();
    check_conditional("If-Match", true);
    check_conditional("If-None-Match", true);
    check_conditional("If-Modified-Since", true);
    check_conditional("If-Unmodified-Since", true);
    check_conditional("Range", false);
    check_refused("HEAD / HTTP/1.1\r\n\r\n", -400, HTTP_HEAD);
    check_refused("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\nbad\r\n\r\n", -400,
                  HTTP_HEAD);
    check_refused("HEAD / HTTP/2.0\r\n\r\n", -505, HTTP_HEAD);
    check_refused("HEAD http://<h>/ HTTP/1.1\r\nHost: x\r\n\r\n", -400, HTTP_HEAD);
    check_refused("HEAD / HTTP/1.1x\r\n\r\n", -400, HTTP_GET);
    check_refused("HEAD /\t HTTP/1.1\r\n\r\n", -400, HTTP_GET);
    check_connection("1.1", "", true, false);
    check_connection("1.1", "Connection: close\r\n", false, false);
    check_connection("1.1", "Connection: keep-alive, CLOSE\r\n", false, false);
    check_connection("1.1", "Connection: closed\r\n", true, false);
    check_connection("1.2", "", true, false);
    check_connection("1.0", "", false, false);
    check_connection("1.0", "Connection: keep-alive\r\n", true, false);
    check_connection("1.0", "Connection: keep-alive\r\nConnection: close\r\n", false, false);
    check_connection("1.1", "Content-Length: 0\r\n", true, false);
    check_connection("1.1", "Content-Length: 00\r\n", true, false);
    check_connection("1.1", "Content-Length: 5\r\n", false, true);
    check_connection("1.1", "Content-Length: 10\r\n", false, true);
    check_connection("1.1", "Transfer-Encoding: chunked\r\n", false, true);
    check_connection("1.1", "Transfer-Encoding: ,\t, Chunked ,\r\n", false, true);
    check_connection("1.0", "Connection: keep-alive\r\nContent-Length: 1\r\n", false, true);
    check_connection("1.1", "Connection: , keep-alive ,, close,\r\n", false, false);
    check_target("/a?q", "/a?q");
    check_target("http://h/a?q", "/a?q");
    check_target("HTTP://H:8080//a", "//a");
    check_target("https://[::1]:80/a", "/a");
    check_target("http://h", "/");
    check_target("http://h?q=/a", "/");
    check_target("http://../a", "/a"); /* "..": a host */
    check_target("ftp://h/a", "ftp://h/a");
    check_target("http:/h/a", "http:/h/a");
    check_target("*", "*");
    check_twice();
    check_methods();
    check_bytes();
    check_long_line();
    check_limit();
    check_mutants();
    parse_exact(
        "", 0,
        &(struct request){0}); /* frees the last copy but one byte, which the leak check allows */
    return tap_done();
}
