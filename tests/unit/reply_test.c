/*
 * reply_test: from a target to a path, from a file to the head of its reply, and the line in the log.
 *
 * Run: build/asan/reply_test
 */
#include "reply.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/die.h"
#include "common/log.h"
#include "http_date.h"
#include "tap.h"

static const struct {
    const char *target;
    const char *path; /* NULL: refused */
    int status;
} paths[] = {
    {"/", "index.html", 0},
    {"/a", "a", 0},
    {"/a/", "a/index.html", 0},
    {"/a?b", "a", 0},
    {"/?b", "index.html", 0},
    {"//a", "a", 0},
    {"/././a", "a", 0},
    {"/a//b", "a/b", 0},
    {"/a/./b", "a/b", 0},
    {"//a/.//./b//", "a/b/index.html", 0},
    {"/a/.", "a/index.html", 0},
    {"/a/%2E?q", "a/index.html", 0},
    {"/.", "index.html", 0},
    {"//", "index.html", 0},
    {"/.a/..b/c./...", ".a/..b/c./...", 0},
    {"/%61", "a", 0},
    {"/%39%09", "9\t", 0},
    {"/%68%65%6c%6c%6F", "hello", 0},
    {"/name%20with%20space", "name with space", 0},
    {"/%C3%BCn%c3%afcode",
     "\xc3\xbcn\xc3\xaf"
     "code",
     0},
    {"/100%25", "100%", 0},
    {"/a%23b", "a#b", 0},
    {"/a?../../b", "a", 0},
    {"/a?b?c/%zz", "a", 0},
    {"/%2561", "%61", 0},
    {"/a%2Fb", "a/b", 0},
    {"%2fa", NULL, 400},
    {"/a%3fb", "a?b", 0},
    {"/+", "+", 0},
    {"/..a/b..", "..a/b..", 0},
    {"", NULL, 400},
    {"a", NULL, 400},
    {"*", NULL, 400},
    {"?a", NULL, 400},
    {"ftp://h/a", NULL, 400},
    {"h:80", NULL, 400},
    {"/%-1", NULL, 400},
    {"/%%41", NULL, 400},
    {"/a%", NULL, 400},
    {"/..%00/", NULL, 400},
    {"/....//../a", NULL, 403},
    {"/a%2f..%2f..%2fb", NULL, 403},
    {"/../", NULL, 403},
    {"//../a", NULL, 403},
    {"/%", NULL, 400},
    {"/%4", NULL, 400},
    {"/%zz", NULL, 400},
    {"/%4g", NULL, 400},
    {"/%00", NULL, 400},
    {"/a%00b", NULL, 400},
    {"/..", NULL, 403},
    {"/../a", NULL, 403},
    {"/a/../b", NULL, 403},
    {"/a/..", NULL, 403},
    {"/.//../a", NULL, 403},
    {"/%2e%2e/a", NULL, 403},
    {"/..%2fa", NULL, 403},
};

/* The target is a heap block of exactly its size: the sanitized build finds a read beyond it. */
static int path_of(const char *target, size_t len, char path[REPLY_PATH_MAX])
{
    char *copy = malloc(len > 0 ? len : 1);

    if (copy == NULL)
        abort();
    memcpy(copy, target, len);
    int status = reply_path(&(struct request){.method = HTTP_GET, .target = {copy, len}}, path);
    free(copy);
    return status;
}

static void check_paths(void)
{
    char path[REPLY_PATH_MAX];

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        int status = path_of(paths[i].target, strlen(paths[i].target), path);
        bool right = status == paths[i].status && (status != 0 || strcmp(path, paths[i].path) == 0);
        tap_ok(right, "\"%s\": %d, \"%s\"", paths[i].target, status, status == 0 ? path : "");
    }
}

/* What no file is looked up for. */
static void check_methods(void)
{
    char path[REPLY_PATH_MAX];
    struct request req = {.target = {"/a", 2}};

    req.method = HTTP_NOT_ALLOWED;
    tap_ok(reply_path(&req, path) == 405, "a method that is not offered");
    req.method = HTTP_UNKNOWN;
    tap_ok(reply_path(&req, path) == 501, "a method that is none");
    req.method = HTTP_HEAD;
    tap_ok(reply_path(&req, path) == 0, "HEAD");
}

/* Around the size of the buffer: cut off, a path would name another file. */
static void check_long_paths(void)
{
    static char target[2 * REPLY_PATH_MAX];
    char path[REPLY_PATH_MAX];
    int wrong = 0;

    for (size_t len = REPLY_PATH_MAX - 40; len < REPLY_PATH_MAX + 40; len++) {
        for (int slash = 0; slash < 2; slash++) {
            memset(target, 'a', len);
            target[0] = '/';
            if (slash)
                target[len - 1] = '/';
            int status = path_of(target, len, path);
            bool whole =
                status == 0 && strlen(path) == len - 1 + (slash ? strlen("index.html") : 0);
            wrong += !whole && status != 414;
        }
    }
    tap_ok(wrong == 0, "targets around REPLY_PATH_MAX: %d neither whole nor refused", wrong);
}

static int count(const struct reply *r, const char *text)
{
    int n = 0;

    for (size_t i = 0; i + strlen(text) <= r->head_len; i++)
        n += memcmp(r->head + i, text, strlen(text)) == 0;
    return n;
}

/* What the head says of the body, -1 if nothing. */
static long said_length(const struct reply *r)
{
    static const char name[] = "\r\nContent-Length: ";

    for (size_t i = 0; i + sizeof name <= r->head_len; i++)
        if (memcmp(r->head + i, name, sizeof name - 1) == 0)
            return atol(r->head + i + sizeof name - 1);
    return -1;
}

/* The bytes that come: the text of an error, or those of the file. */
static long body_length(const struct reply *r)
{
    for (size_t i = 0; i + 4 <= r->head_len; i++)
        if (memcmp(r->head + i, "\r\n\r\n", 4) == 0)
            return (long)(r->head_len - i - 4) + (long)(r->end - r->offset);
    return -1;
}

static void check_errors(void)
{
    static const int statuses[] = {400, 403, 404, 405, 412, 414, 416, 431, 500, 501, 503, 505, 999};
    struct request head = {.method = HTTP_HEAD, .keep_alive = true, .minor = 1};
    struct reply r;

    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        char line[32];
        snprintf(line, sizeof line, "HTTP/1.1 %d ", statuses[i]);
        reply_error(&r, NULL, statuses[i]);
        tap_ok(r.head_len < sizeof r.head && (statuses[i] == 999 || count(&r, line) == 1),
               "%d: \"%s\"", statuses[i], tap_quote(r.head, r.head_len));
        tap_ok(count(&r, "\r\nConnection: close\r\n") == 1 && !r.keep_alive && r.fd == -1,
               "%d without a request ends the connection", statuses[i]);
        char first[64];
        long text = body_length(&r) - 1; /* the body says what the first line says */
        snprintf(first, sizeof first, "HTTP/1.1 %.*s\r\n", (int)text,
                 r.head + r.head_len - text - 1);
        tap_ok(text > 5 && count(&r, first) == 1, "the first line: %s",
               tap_quote(first, strlen(first)));
        tap_ok(count(&r, "\r\n\r\n") == 1 && count(&r, "\r\nDate: ") == 1 &&
                   count(&r, "\r\nAllow: GET, HEAD\r\n") == (statuses[i] == 405) &&
                   count(&r, "\r\nRetry-After: 1\r\n") == (statuses[i] == 503),
               "%d has the fields that belong to it", statuses[i]);
        tap_ok(said_length(&r) == body_length(&r), "%d: a body of %ld bytes, it says %ld",
               statuses[i], body_length(&r), said_length(&r));
        reply_error(&r, &head, statuses[i]);
        tap_ok(r.head_len >= 4 && memcmp(r.head + r.head_len - 4, "\r\n\r\n", 4) == 0,
               "%d to HEAD has no body", statuses[i]);
    }
}

static void check_errno(void)
{
    static const struct {
        int error, status;
    } errors[] = {
        {ENOENT, 404}, {ENOTDIR, 404}, {ENAMETOOLONG, 404}, {EACCES, 403}, {EPERM, 403},
        {EXDEV, 403},  {ELOOP, 403},   {EMFILE, 503},       {ENFILE, 503}, {ENOMEM, 503},
        {EILSEQ, 404}, {ENXIO, 403},   {EOPNOTSUPP, 403},   {EAGAIN, 503}, {EINTR, 503},
        {EIO, 500},    {ESTALE, 500},  {EOVERFLOW, 500},    {ENODEV, 500}, {ECANCELED, 500},
        {EBADF, 500},
    };
    struct reply r;

    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        reply_errno(&r, &(struct request){.minor = 1}, errors[i].error);
        tap_ok(r.status == errors[i].status, "%s: %d, expected %d", strerror(errors[i].error),
               r.status, errors[i].status);
    }
}

/* Every target of a folder, however long, gives a whole head: it stands in Location. Half of it may
 * be a query. */
static void check_folder(size_t len, bool query)
{
    static char target[8192];
    int fd = open("/", O_RDONLY | O_DIRECTORY);
    struct request req = {.method = HTTP_GET, .minor = 1, .target = {target, len}};
    struct stat st;
    struct reply r;

    memset(&r, 0, sizeof r);
    memset(target, 'f', len);
    target[0] = '/';
    if (query)
        target[len / 2] = '?';
    if (fd < 0 || fstat(fd, &st) < 0)
        abort();
    reply_file(&r, &req, fd, &st, target + 1);
    tap_ok(len <= REPLY_HEAD_MAX / 2 ? r.status == 301 && count(&r, "\r\nLocation: /") == 1
                                     : r.status == 414,
           "a folder with a name of %zu bytes: %d", len, r.status);
    tap_ok(count(&r, "\r\n\r\n") == 1 && r.head_len <= sizeof r.head && r.fd == -1,
           "a folder with a name of %zu bytes: head of %zu bytes", len, r.head_len);
    tap_ok(fcntl(fd, F_GETFD) < 0, "reply_file() closes a descriptor that is not sent");
}

#define BEFORE   "Sun, 06 Nov 1994 08:49:36 GMT"
#define MODIFIED "Sun, 06 Nov 1994 08:49:37 GMT"
#define AFTER    "Sun, 06 Nov 1994 08:49:38 GMT"

/* One of each pair is the field that counts by the order of RFC 9110 section 13.2.2. */
static const struct {
    const char *fields;
    int status;
} conditions[] = {
    {"If-Modified-Since: " MODIFIED "\r\n", 304},
    {"If-Modified-Since: " BEFORE "\r\n", 200},
    {"If-Modified-Since: yesterday\r\n", 200},
    {"If-None-Match: *\r\n", 304},
    {"If-None-Match: \"x\"\r\n", 200},
    {"If-None-Match: \"*\"\r\n", 200},
    {"If-None-Match: \"x\"\r\nIf-Modified-Since: " MODIFIED "\r\n", 200},
    {"If-Modified-Since: " MODIFIED "\r\nIf-None-Match: W/\"x\", \"y\"\r\n", 200},
    {"If-None-Match:\r\nIf-Modified-Since: " MODIFIED "\r\n", 200},
    {"If-None-Match: *\r\nIf-Modified-Since: " BEFORE "\r\n", 304},
    {"If-Unmodified-Since: " MODIFIED "\r\n", 200},
    {"If-Unmodified-Since: " AFTER "\r\n", 200},
    {"If-Unmodified-Since: " BEFORE "\r\n", 412},
    {"If-Unmodified-Since: yesterday\r\n", 200},
    {"If-Match: *\r\n", 200},
    {"If-Match: \"x\"\r\n", 412},
    {"If-Match:\r\n", 412},
    {"If-Match: *\r\nIf-Unmodified-Since: " BEFORE "\r\n", 200},
    {"If-Match: \"x\"\r\nIf-Unmodified-Since: " AFTER "\r\n", 412},
    {"If-Match: *\r\nIf-None-Match: *\r\n", 304},
    {"If-Match: \"x\"\r\nIf-None-Match: *\r\n", 412},
    {"If-Unmodified-Since: " MODIFIED "\r\nIf-Modified-Since: " MODIFIED "\r\n", 304},
    {"If-Unmodified-Since: " BEFORE "\r\nRange: bytes=0-1\r\n", 412},
    {"If-Unmodified-Since: " BEFORE "\r\nRange: bytes=9-\r\n", 412},
    {"If-None-Match: \"x\"\r\nRange: bytes=0-1\r\n", 206},
    {"If-Match: *\r\nRange: bytes=0-1\r\nIf-Range: " MODIFIED "\r\n", 206},
};

#define SIZE 5

/* The reply to a request as the parser gives it, for a file of MODIFIED. */
static void reply_of(struct reply *r, const char *method, const char *version, const char *fields,
                     const struct stat *st, const char *path)
{
    static char text[512];
    struct request req;
    int len = snprintf(text, sizeof text, "%s /%s HTTP/%s\r\nHost: x\r\n%s\r\n", method, path,
                       version, fields);

    if (http_parse(text, (size_t)len, &req) != len)
        abort();
    reply_found(r, &req, 0, st, path);
}

static void reply_to(struct reply *r, const char *method, const char *fields, mode_t mode)
{
    const struct stat st = {.st_mode = mode, .st_size = SIZE, .st_mtime = 784111777};

    reply_of(r, method, "1.1", fields, &st, "file");
}

static void check_conditions(void)
{
    struct reply r;

    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        const char *fields = conditions[i].fields;
        int status = conditions[i].status;
        reply_to(&r, "GET", fields, S_IFREG);
        tap_ok(r.status == status, "\"%s\": %d, expected %d", tap_quote(fields, strlen(fields)),
               r.status, status);
        tap_ok(r.keep_alive && (r.fd == 0) == (status < 300) &&
                   count(&r, "\r\n\r\n412 ") == (status == 412),
               "%d sends what belongs to it", status);
        reply_to(&r, "HEAD", fields, S_IFREG);
        tap_ok(r.status == (status == 206 ? 200 : status) && r.fd == -1 &&
                   count(&r, "\r\n\r\n412 ") == 0,
               "to HEAD: %d", r.status);
    }
    reply_to(&r, "GET", "If-Match: \"x\"\r\n", S_IFDIR);
    tap_ok(r.status == 301, "a condition counts only where the reply would be 200: %d", r.status);
}

/* first < 0: the whole file, and no Content-Range. Those that are 416 say the size. */
static const struct {
    const char *fields;
    int status;
    off_t first, last;
} ranges[] = {
    {"Range: bytes=0-0\r\n", 206, 0, 0},
    {"Range: bytes=0-3\r\n", 206, 0, 3},
    {"Range: bytes=2-\r\n", 206, 2, 4},
    {"Range: bytes=-2\r\n", 206, 3, 4},
    {"Range: bytes=4-\r\n", 206, 4, 4},
    {"Range: bytes=0-4\r\n", 206, 0, 4},
    {"Range: bytes=0-\r\n", 206, 0, 4},
    {"Range: bytes=0-5\r\n", 206, 0, 4},
    {"Range: bytes=3-99999999999999999999999\r\n", 206, 3, 4},
    {"Range: bytes=-5\r\n", 206, 0, 4},
    {"Range: bytes=-6\r\n", 206, 0, 4},
    {"Range: bytes=-99999999999999999999999\r\n", 206, 0, 4},
    {"Range: bytes=003-0004\r\n", 206, 3, 4},
    {"Range: BYTES=1-1\r\n", 206, 1, 1},
    {"Range: bytes=5-\r\n", 416, 0, 0},
    {"Range: bytes=5-9\r\n", 416, 0, 0},
    {"Range: bytes=99999999999999999999999-\r\n", 416, 0, 0},
    {"Range: bytes=-0\r\n", 416, 0, 0},
    {"Range: bytes=0-1,3-4\r\n", 200, -1, 0},
    {"Range: bytes=0-1, -1\r\n", 200, -1, 0},
    {"Range: bytes=4-3\r\n", 200, -1, 0},
    {"Range: bytes=4-0\r\n", 200, -1, 0},
    {"Range: bytes=9-8\r\n", 200, -1, 0},
    {"Range: bytes=\r\n", 200, -1, 0},
    {"Range: bytes=-\r\n", 200, -1, 0},
    {"Range: bytes\r\n", 200, -1, 0},
    {"Range: bytes=a-b\r\n", 200, -1, 0},
    {"Range: bytes=0x0-0x5\r\n", 200, -1, 0},
    {"Range: bytes=1\r\n", 200, -1, 0},
    {"Range: bytes=12\r\n", 200, -1, 0},
    {"Range: bytes=--1\r\n", 200, -1, 0},
    {"Range: bytes=-1-\r\n", 200, -1, 0},
    {"Range: bytes=1-2-3\r\n", 200, -1, 0},
    {"Range: bytes=+0-4\r\n", 200, -1, 0},
    {"Range: bytes=0-+4\r\n", 200, -1, 0},
    {"Range: bytes=0-4x\r\n", 200, -1, 0},
    {"Range: bytes=0-:\r\n", 200, -1, 0},
    {"Range: bytes 0-4\r\n", 200, -1, 0},
    {"Range: bytes=0-4;q=1\r\n", 200, -1, 0},
    {"Range: lines=0-4\r\n", 200, -1, 0},
    {"Range: 0-4\r\n", 200, -1, 0},
    {"Range:\r\n", 200, -1, 0},
    {"Range: =0-4\r\n", 200, -1, 0},
    {"If-Range: " MODIFIED "\r\n", 200, -1, 0},
    {"Range: bytes=0-1\r\nIf-Range: " MODIFIED "\r\n", 206, 0, 1},
    {"Range: bytes=9-\r\nIf-Range: " MODIFIED "\r\n", 416, 0, 0},
    {"Range: bytes=0-1\r\nIf-Range: " BEFORE "\r\n", 200, -1, 0},
    {"Range: bytes=0-1\r\nIf-Range: " AFTER "\r\n", 200, -1, 0},
    {"Range: bytes=9-\r\nIf-Range: " AFTER "\r\n", 200, -1, 0},
    {"Range: bytes=0-1\r\nIf-Range: \"an-etag\"\r\n", 200, -1, 0},
    {"Range: bytes=0-1\r\nIf-Range: W/\"an-etag\"\r\n", 200, -1, 0},
    {"Range: bytes=0-1\r\nIf-Range:\r\n", 200, -1, 0},
};

static bool says_range(const struct reply *r, off_t first, off_t last, off_t size)
{
    char line[128];

    if (r->status == 206)
        snprintf(line, sizeof line, "\r\nContent-Range: bytes %lld-%lld/%lld\r\n", (long long)first,
                 (long long)last, (long long)size);
    else
        snprintf(line, sizeof line, "\r\nContent-Range: bytes */%lld\r\n", (long long)size);
    return count(r, line) == 1;
}

static void check_ranges(void)
{
    struct reply r;

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const char *fields = ranges[i].fields;
        off_t first = ranges[i].first, last = ranges[i].last;
        reply_to(&r, "GET", fields, S_IFREG);
        tap_ok(r.status == ranges[i].status, "\"%s\": %d, expected %d",
               tap_quote(fields, strlen(fields)), r.status, ranges[i].status);
        tap_ok(said_length(&r) >= 0 && said_length(&r) == body_length(&r) &&
                   (r.status == 200 ? count(&r, "\r\nContent-Range: ") == 0
                                    : says_range(&r, first, last, SIZE)),
               "its head: \"%s\"", tap_quote(r.head, r.head_len));
        tap_ok(r.status == 416   ? r.fd == -1
               : r.status == 206 ? r.offset == first && r.end == last + 1
                                 : r.offset == 0 && r.end == SIZE,
               "its bytes: %lld to %lld", (long long)r.offset, (long long)r.end);
    }
}

/* Files of any length: 0, and more than 32 bits hold. */
static void check_sizes(void)
{
    static const long long sizes[] = {0, 1, 4294967295, 4294967296, 1LL << 52};
    struct reply r;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct stat st = {.st_mode = S_IFREG, .st_size = (off_t)sizes[i], .st_mtime = 1};
        char line[64];
        snprintf(line, sizeof line, "\r\nContent-Length: %lld\r\n", sizes[i]);
        reply_of(&r, "GET", "1.1", "", &st, "file");
        tap_ok(count(&r, line) == 1 && r.end - r.offset == sizes[i] && (r.fd == 0) == (i > 0),
               "%lld bytes: \"%s\"", sizes[i], tap_quote(r.head, r.head_len));
        reply_of(&r, "GET", "1.1", "Range: bytes=-5\r\n", &st, "file");
        tap_ok(sizes[i] == 0 ? r.status == 416
                             : r.status == 206 && r.end == sizes[i] &&
                                   r.offset == (sizes[i] < 5 ? 0 : sizes[i] - 5),
               "the last 5 of %lld: %d", sizes[i], r.status);
        reply_of(&r, "GET", "1.1", "Range: bytes=0-\r\n", &st, "file");
        tap_ok(sizes[i] == 0 ? r.status == 416 && says_range(&r, 0, 0, 0)
                             : r.status == 206 && says_range(&r, 0, st.st_size - 1, st.st_size),
               "all of %lld: %d", sizes[i], r.status);
    }
}

/* What servers count, head and body together, must not overflow: a sparse file may be as large as an
 * off_t can say. A part of it can be had. */
static void check_largest(void)
{
    struct reply r;

    for (int less = 0; less <= REPLY_HEAD_MAX; less += REPLY_HEAD_MAX / 2) {
        struct stat st = {.st_mode = S_IFREG, .st_size = LLONG_MAX - less, .st_mtime = 1};
        reply_of(&r, "GET", "1.1", "Connection: close\r\n", &st, "file");
        tap_ok(less < REPLY_HEAD_MAX
                   ? r.status == 500 && r.fd == -1 && r.end == 0
                   : r.status == 200 && r.end == (off_t)st.st_size && !r.may_close,
               "%lld bytes: %d", (long long)st.st_size, r.status);
        reply_of(&r, "GET", "1.1", "Connection: close\r\nRange: bytes=-5\r\n", &st, "file");
        tap_ok(r.status == 206 && r.end == (off_t)st.st_size && r.may_close, "the last 5: %d",
               r.status);
    }
}

/* To HEAD all that GET says of the file, and nothing of it; and what is said of the connection. */
/* Who says `close` gets a short reply and the end with it; of a longer one its head. */
static void check_may_close(void)
{
    static const struct {
        const char *method, *fields;
        off_t size;
        bool may_close;
    } rows[] = {
        {"GET", "", 5, false},
        {"GET", "Connection: close\r\n", 5, true},
        {"GET", "Connection: close\r\nContent-Length: 1\r\n", 5, false},
        {"GET", "Connection: close\r\n", REPLY_SHORT - 500, true},
        {"GET", "Connection: close\r\n", REPLY_SHORT, false},
        {"HEAD", "Connection: close\r\n", REPLY_SHORT, true},
        {"GET", "Connection: close\r\nRange: bytes=5-9\r\n", REPLY_SHORT, true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct stat st = {.st_mode = S_IFREG, .st_size = rows[i].size};
        struct reply r;
        reply_of(&r, rows[i].method, "1.1", rows[i].fields, &st, "file");
        tap_ok(r.may_close == rows[i].may_close, "%s \"%s\" of %lld bytes: may close %d",
               rows[i].method, tap_quote(rows[i].fields, strlen(rows[i].fields)),
               (long long)rows[i].size, r.may_close);
    }
    long long longest = 0;
    for (int size = REPLY_SHORT - 1000; size <= REPLY_SHORT; size++) {
        const struct stat st = {.st_mode = S_IFREG, .st_size = size};
        struct reply r;
        reply_of(&r, "GET", "1.1", "Connection: close\r\n", &st, "file");
        if (r.may_close)
            longest = (long long)r.head_len + (r.end - r.offset);
    }
    tap_ok(longest > 0 && longest <= 10L * 1428, "ten packets hold the longest of them, %lld bytes",
           longest);
}

static void check_heads(void)
{
    static const struct {
        const char *version, *fields,
            *line; /* NULL: nothing is said, which 1.1 takes for staying */
        bool stays;
    } connections[] = {
        {"1.1", "", NULL, true},
        {"1.1", "Connection: close\r\n", "\r\nConnection: close\r\n\r\n", false},
        {"1.0", "", "\r\nConnection: close\r\n\r\n", false},
        {"1.0", "Connection: keep-alive\r\n", "\r\nConnection: keep-alive\r\n\r\n", true},
    };
    const struct stat st = {.st_mode = S_IFREG, .st_size = SIZE, .st_mtime = 784111777};
    struct reply get, head;

    for (size_t i = 0; i < sizeof connections / sizeof *connections; i++) {
        const char *version = connections[i].version, *fields = connections[i].fields;
        time_t before = time(NULL);
        reply_of(&get, "GET", version, fields, &st, "file");
        reply_of(&head, "HEAD", version, fields, &st, "file");
        bool same_second = before == time(NULL);
        tap_ok(!same_second || (head.head_len == get.head_len &&
                                memcmp(head.head, get.head, get.head_len) == 0 && head.fd == -1),
               "HEAD, %s, \"%s\"", version, tap_quote(fields, strlen(fields)));
        tap_ok(get.keep_alive == connections[i].stays &&
                   count(&get, "\r\nConnection: ") == (connections[i].line != NULL) &&
                   (connections[i].line == NULL || count(&get, connections[i].line) == 1),
               "\"%s\"", tap_quote(get.head, get.head_len));
        tap_ok(count(&get, "\r\nLast-Modified: " MODIFIED "\r\n") == 1 &&
                   count(&get, "\r\nContent-Length: 5\r\n") == 1 &&
                   count(&get, "\r\nAccept-Ranges: bytes\r\n") == 1 &&
                   count(&get, "\r\nContent-Type: ") == 1 && count(&get, "\r\nDate: ") == 1,
               "each of its fields once");
    }
    check_may_close();
    reply_to(&get, "GET", "If-None-Match: *\r\n", S_IFREG);
    tap_ok(count(&get, "\r\nContent-Length: ") == 0 && body_length(&get) == 0, "304: \"%s\"",
           tap_quote(get.head, get.head_len));
    reply_error(&get, NULL, 404);
    tap_ok(count(&get, "\r\nLast-Modified: ") == 0, "an error is of no date");
}

static void check_date(void)
{
    char before[64], after[64];
    struct reply r;
    time_t t = time(NULL);

    snprintf(before, sizeof before, "\r\nDate: ");
    http_date_format(t, before + 8);
    reply_error(&r, NULL, 404);
    t = time(NULL);
    snprintf(after, sizeof after, "\r\nDate: ");
    http_date_format(t, after + 8);
    tap_ok(count(&r, before) + count(&r, after) >= 1, "\"%s\" is said at %s",
           tap_quote(r.head, r.head_len), after + 8);
}

/* A cache would keep what it has until then; and what is written later in this second has the same
 * date. */
static void check_young(void)
{
    struct stat st = {.st_mode = S_IFREG, .st_size = SIZE};
    struct reply r;

    for (int age = -1000; age <= 1000; age += 1000) {
        time_t now;
        do {
            now = time(NULL);
            st.st_mtime = now - age;
            reply_of(&r, "GET", "1.1", "", &st, "file");
        } while (time(NULL) != now);
        tap_ok(r.status == 200 && count(&r, "Last-Modified: ") == (age > 0),
               "a date only for a file of before this second: %d s", age);
    }
}

/* A parser that says -1 for "no date" says at the same time 31 Dec 1969 23:59:59. */
static void check_before_1970(void)
{
    const struct stat st = {.st_mode = S_IFREG, .st_size = SIZE, .st_mtime = -1};
    struct reply r;

    reply_of(&r, "GET", "1.1", "If-Modified-Since: garbage\r\n", &st, "file");
    tap_ok(r.status == 200 && count(&r, "\r\nLast-Modified: Wed, 31 Dec 1969 23:59:59 GMT\r\n"),
           "a file from before 1970, and no date: %d", r.status);
    reply_of(&r, "GET", "1.1", "Range: bytes=0-1\r\nIf-Range: garbage\r\n", &st, "file");
    tap_ok(r.status == 200, "a range of it: %d", r.status);
}

static void check_types(void)
{
    static const struct {
        const char *path, *type;
    } types[] = {
        {"a.html", "text/html; charset=utf-8"},
        {"a.txt", "text/plain; charset=utf-8"},
        {"a.css", "text/css"},
        {"a.js", "text/javascript"},
        {"a.json", "application/json"},
        {"a.xml", "application/xml"},
        {"a.pdf", "application/pdf"},
        {"a.png", "image/png"},
        {"a.jpg", "image/jpeg"},
        {"a.jpeg", "image/jpeg"},
        {"a.gif", "image/gif"},
        {"a.svg", "image/svg+xml"},
        {"a.ico", "image/vnd.microsoft.icon"},
        {"a.webp", "image/webp"},
        {"a.woff2", "font/woff2"},
        {"a.wasm", "application/wasm"},
        {"a.mp4", "video/mp4"},
        {"a.gz", "application/gzip"},
        {"a.zip", "application/zip"},
        {"a.epub", "application/epub+zip"},
        {"a.htm", "text/html; charset=utf-8"},
        {"a.mjs", "text/javascript"},
        {"a.webmanifest", "application/manifest+json"},
        {"a.vtt", "text/vtt"},
        {"a.avif", "image/avif"},
        {"a.woff", "font/woff"},
        {"a.webm", "video/webm"},
        {"a.mp3", "audio/mpeg"},
        {"A.HTML", "text/html; charset=utf-8"},
        {"a.html/b.txt", "text/plain; charset=utf-8"},
        {"a.tar.gz", "application/gzip"},
        {"no-suffix", "application/octet-stream"},
        {"a.unknown", "application/octet-stream"},
        {"dot.", "application/octet-stream"},
        {"html", "application/octet-stream"},
    };
    const struct stat st = {.st_mode = S_IFREG, .st_size = SIZE, .st_mtime = 1};
    struct reply r;

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char line[128];
        snprintf(line, sizeof line, "\r\nContent-Type: %s\r\n", types[i].type);
        reply_of(&r, "GET", "1.1", "", &st, types[i].path);
        tap_ok(count(&r, line) == 1, "%s is %s", types[i].path, types[i].type);
    }
}

/* The address of the folder itself: two slashes in front would be that of another host. */
static void check_locations(void)
{
    static const struct {
        const char *target, *location;
    } folders[] = {
        {"/sub", "/sub/"},
        {"/sub?x=1", "/sub/?x=1"},
        {"//sub", "/sub/"},
        {"///sub?//", "/sub/?//"},
        {"/a/b", "/a/b/"},
        {"/%73ub", "/%73ub/"},
        {"/sub?a?b/%zz", "/sub/?a?b/%zz"},
        {"/sub?", "/sub/?"},
    };
    const struct stat st = {.st_mode = S_IFDIR};
    struct reply r;

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char line[64];
        struct request req = {.method = HTTP_GET,
                              .minor = 1,
                              .target = {folders[i].target, strlen(folders[i].target)}};
        snprintf(line, sizeof line, "\r\nLocation: %s\r\n", folders[i].location);
        reply_found(&r, &req, 0, &st, "sub");
        tap_ok(r.status == 301 && r.fd == -1 && count(&r, line) == 1, "%s: \"%s\"",
               folders[i].target, tap_quote(r.head, r.head_len));
    }
    for (size_t i = 0; i < 3; i++) { /* their index.html is a folder */
        const char *const targets[] = {"/", "/sub/", "//?x=1"};
        struct request req = {
            .method = HTTP_GET, .minor = 1, .target = {targets[i], strlen(targets[i])}};
        reply_found(&r, &req, 0, &st, "index.html");
        tap_ok(r.status == 404, "%s, whose index.html is a folder: %d", targets[i], r.status);
    }
    for (size_t i = 0; i < 3; i++) {
        const mode_t modes[] = {S_IFIFO, S_IFSOCK, S_IFCHR};
        reply_to(&r, "GET", "", modes[i]);
        tap_ok(r.status == 403 && r.fd == -1, "neither file nor folder: %d", r.status);
    }
}

/* ---- the whole way, in a folder of the test's own */

static const struct {
    const char *target;
    int status;
} plans[] = {
    {"/file", 200},     {"/", 404},           {"/sub/", 200},
    {"/sub", 301},      {"/none", 404},       {"/file/", 404},
    {"/file/x", 404},   {"/fifo", 403},       {"/../x", 403},
    {"/link-out", 403}, {"/link-out/x", 403}, {"/none/x", 404},
    {"/%00", 400},      {"/sub/./", 200},     {"/sub//index.html", 200},
};

static int lowest_free(void)
{
    int fd = dup(0);

    close(fd);
    return fd;
}

/* In the working folder. */
static void make_tree(void)
{
    const char *const files[] = {"file", "sub/index.html"};
    bool made =
        mkdir("sub", 0755) == 0 && mkfifo("fifo", 0644) == 0 && symlink("..", "link-out") == 0;

    for (size_t i = 0; i < 2; i++) {
        int fd = open(files[i], O_CREAT | O_WRONLY, 0644);
        made = made && fd >= 0;
        close(fd);
    }
    if (!made) {
        perror("make_tree");
        exit(EXIT_FAILURE);
    }
}

static void remove_tree(const char *top)
{
    const char *const names[] = {"sub/index.html", "file", "fifo", "link-out"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(names[i]);
    if (rmdir("sub") < 0 || chdir("/") < 0 || rmdir(top) < 0)
        perror(top);
}

static void check_plans(void)
{
    const char *tmp = getenv("TMPDIR");
    char top[1024];

    snprintf(top, sizeof top, "%s/reply_test.XXXXXX", tmp != NULL ? tmp : "/tmp");
    int root = mkdtemp(top) != NULL ? open(top, O_RDONLY | O_DIRECTORY) : -1;
    if (root < 0 || chdir(top) < 0) {
        perror(top);
        exit(EXIT_FAILURE);
    }
    make_tree();
    int before = lowest_free();
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        struct request req = {
            .method = HTTP_HEAD, .minor = 1, .target = {plans[i].target, strlen(plans[i].target)}};
        struct reply r;
        reply_plan(&r, &req, root);
        tap_ok(r.status == plans[i].status && r.fd == -1, "%s: %d, expected %d", plans[i].target,
               r.status, plans[i].status);
        req.method = HTTP_UNKNOWN;
        reply_plan(&r, &req, root);
        tap_ok(r.status == 501, "by an unknown method: %d", r.status);
    }
    tap_ok(lowest_free() == before, "reply_plan(): descriptor %d is left open", before);
    close(root);
    remove_tree(top);
}

/* ---- the log */

static void check_escape(const char *bytes, size_t len, size_t size, const char *expected)
{
    char *text = malloc(size); /* of this size: the sanitized build finds a step beyond it */

    if (text == NULL)
        abort();
    log_escape(text, size, bytes, len);
    tap_ok(strcmp(text, expected) == 0, "in a log of %zu bytes: %s, expected %s", size, text,
           expected);
    free(text);
}

/* What reply_log() writes, read back from a file in the place of stderr. */
static void check_log(void)
{
    static char longest[HTTP_HEAD_MAX], more[2 * LOG_LINE_MAX];
    static const char line[] = "GET /\x1b[2J\"\\ HTTP/1.1";
    const char expected[] = "\"GET /\\x1b[2J\\x22\\x5c HTTP/1.1\" 206 5\n";
    struct request req = {.line = {line, sizeof line - 1}};
    struct reply r = {.status = 206, .offset = 10, .end = 15};
    char text[512] = "";
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);

    if (file == NULL || saved < 0 || dup2(fileno(file), STDERR_FILENO) < 0)
        abort();
    reply_log(&r, &req);
    ssize_t got = pread(STDERR_FILENO, text, sizeof text - 1, 0);
    memset(longest, 'x', sizeof longest);
    req.line = (struct slice){longest, sizeof longest};
    reply_log(&r, &req);
    ssize_t end = pread(STDERR_FILENO, more, sizeof more, got);
    dup2(saved, STDERR_FILENO);
    close(saved);
    fclose(file);
    size_t len = sizeof expected - 1;
    tap_ok(got > (ssize_t)len && strcmp(text + got - len, expected) == 0, "the log says %s",
           tap_quote(text, strlen(text)));
    tap_ok(end > 20 && end < LOG_LINE_MAX && memcmp(more + end - 9, "x\" 206 5\n", 9) == 0,
           "of a long request line it says so much that the status follows: %zd bytes", end);
}

/* Of a line that is too long the rest is cut, but not its end. */
static void check_long_lines(void)
{
    static char text[2 * LOG_LINE_MAX], got[2 * LOG_LINE_MAX];
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO), wrong = 0;
    off_t at = 0;

    if (file == NULL || saved < 0 || dup2(fileno(file), STDERR_FILENO) < 0)
        abort();
    for (size_t len = LOG_LINE_MAX - 40; len < LOG_LINE_MAX + 40; len++) {
        memset(text, 'x', len);
        log_line(text);
        ssize_t n = pread(STDERR_FILENO, got, sizeof got, at);
        wrong += n <= 0 || n > LOG_LINE_MAX || memchr(got, '\n', (size_t)n) != got + n - 1;
        at += n;
    }
    dup2(saved, STDERR_FILENO);
    close(saved);
    fclose(file);
    tap_ok(wrong == 0, "lines around LOG_LINE_MAX: %d that are no line", wrong);
}

/* A line for which the pipe has no room: who has it, a child or the parent, the next line tells. */
static void check_lost_lines(void)
{
    static char text[1 << 17], name[200];
    int ends[2], saved = dup(STDERR_FILENO);

    if (saved < 0 || pipe(ends) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
        abort();
    memset(name, 'n', sizeof name - 1);
    set_program_name(name);
    log_open();
    for (int fd = 0; fd < 2; fd++)
        if (fcntl(ends[fd], F_SETFL, O_NONBLOCK) < 0)
            abort();
    while (write(ends[1], text, 4096) > 0)
        continue;
    pid_t child = fork();
    if (child < 0)
        abort();
    warn_errno("lost"); /* writes as log_line() does */
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    while (read(ends[0], text, sizeof text) > 0)
        continue;
    log_line("told");
    ssize_t got = read(ends[0], text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    dup2(saved, STDERR_FILENO);
    log_open();
    close(saved);
    close(ends[0]);
    close(ends[1]);
    tap_ok(strstr(text, ": 2 lines are missing here: stderr was not read\n") != NULL &&
               strstr(text, ": told\n") != NULL,
           "of two lost lines the log says %s", tap_quote(text, strlen(text)));
}

int main(void)
{
    check_paths();
    check_long_paths();
    check_errors();
    check_errno();
    check_conditions();
    check_methods();
    check_ranges();
    check_sizes();
    check_largest();
    check_heads();
    check_date();
    check_young();
    check_before_1970();
    check_types();
    check_locations();
    check_plans();
    check_escape("a b~", 4, 64, "a b~");
    check_escape("\x9b\x7f\t\n\"\\", 6, 64, "\\x9b\\x7f\\x09\\x0a\\x22\\x5c");
    check_escape("abcdefgh", 8, 8, "abcd");
    check_escape("\1\2\3", 3, 9, "\\x01\\x02");
    check_escape("", 0, 1, "");
    check_log();
    check_long_lines();
    check_lost_lines();
    for (size_t len = 2; len < 8192; len += len / 3 + 1)
        check_folder(len, len > 4 && len % 2 == 0);
    return tap_done();
}
