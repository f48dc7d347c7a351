/*
 * reply_test: from a target to a path, and the heads of replies.
 *
 * Run: build/asan/reply_test
 */
#include "reply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"

static const struct {
    const char *target;
    const char *path; /* NULL: refused */
} paths[] = {
    {"/", "index.html"},
    {"/a", "a"},
    {"/a/", "a/index.html"},
    {"/a?b", "a"},
    {"/?b", "index.html"},
    {"//a", "a"},
    {"/././a", "a"},
    {"/a//b", "a/b"},
    {"/a/./b", "a/b"},
    {"//a/.//./b//", "a/b/index.html"},
    {"/a/.", "a/index.html"},
    {"/a/%2E?q", "a/index.html"},
    {"/.", "index.html"},
    {"//", "index.html"},
    {"/.a/..b/c./...", ".a/..b/c./..."},
    {"/%61", "a"},
    {"/%2561", "%61"},
    {"/a%2Fb", "a/b"},
    {"/a%3fb", "a?b"},
    {"/+", "+"},
    {"/..a/b..", "..a/b.."},
    {"http://h/a", "a"},
    {"http://h", "index.html"},
    {"http://h?q", "index.html"},
    {"HTTPS://h/a?q", "a"},
    {"", NULL},
    {"a", NULL},
    {"*", NULL},
    {"?a", NULL},
    {"http:///a", NULL},
    {"ftp://h/a", NULL},
    {"/%", NULL},
    {"/%4", NULL},
    {"/%zz", NULL},
    {"/%00", NULL},
    {"/a%00b", NULL},
    {"/..", NULL},
    {"/../a", NULL},
    {"/a/../b", NULL},
    {"/a/..", NULL},
    {"/.//../a", NULL},
    {"/%2e%2e/a", NULL},
    {"/..%2fa", NULL},
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
        if (paths[i].path == NULL)
            tap_ok(status == 400 || status == 403, "\"%s\" is refused: %d", paths[i].target,
                   status);
        else
            tap_ok(status == 0 && strcmp(path, paths[i].path) == 0, "\"%s\": %d, \"%s\"",
                   paths[i].target, status, status == 0 ? path : "");
    }
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
        tap_ok(count(&r, "\r\n\r\n") == 1 && count(&r, "\r\nDate: ") == 1 &&
                   count(&r, "\r\nAllow: ") == (statuses[i] == 405),
               "%d has the fields that belong to it", statuses[i]);
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

/* Every folder name, however long, gives a whole head: the name stands in Location. */
static void check_folder(size_t len)
{
    static char target[8192];
    int fd = open("/", O_RDONLY | O_DIRECTORY);
    struct request req = {.method = HTTP_GET, .minor = 1, .target = {target, len}};
    struct stat st;
    struct reply r;

    memset(target, 'f', len);
    target[0] = '/';
    if (fd < 0 || fstat(fd, &st) < 0)
        abort();
    reply_file(&r, &req, fd, &st, target + 1);
    tap_ok((r.status == 301 && count(&r, "\r\nLocation: /") == 1) || r.status == 404 ||
               r.status == 403,
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

/* The reply to a request as the parser gives it, for a file of five bytes of MODIFIED. */
static void reply_to(struct reply *r, const char *method, const char *fields, mode_t mode)
{
    const struct stat st = {.st_mode = mode, .st_size = 5, .st_mtime = 784111777};
    static char text[512];
    struct request req;
    int len = snprintf(text, sizeof text, "%s /file HTTP/1.1\r\nHost: x\r\n%s\r\n", method, fields);

    if (http_parse(text, (size_t)len, &req) != len)
        abort();
    reply_found(r, &req, 0, &st, "file");
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

int main(void)
{
    check_paths();
    check_long_paths();
    check_errors();
    check_errno();
    check_conditions();
    for (size_t len = 2; len < 8192; len += len / 3 + 1)
        check_folder(len);
    return tap_done();
}
