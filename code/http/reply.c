#include "reply.h"
#include "http_date.h"
#include "log.h"
#include "open_below.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

static const struct {
    int status;
    const char *text;
    const char *fields; /* header fields that go with this status */
} statuses[] = {
    {200, "OK", ""},
    {206, "Partial Content", ""},
    {301, "Moved Permanently", ""},
    {304, "Not Modified", ""},
    {400, "Bad Request", ""},
    {403, "Forbidden", ""},
    {404, "Not Found", ""},
    {405, "Method Not Allowed", "Allow: GET, HEAD\r\n"},
    {412, "Precondition Failed", ""},
    {414, "URI Too Long", ""},
    {416, "Range Not Satisfiable", ""},
    {431, "Request Header Fields Too Large", ""},
    {500, "Internal Server Error", ""},
    {501, "Not Implemented", ""},
    {503, "Service Unavailable", "Retry-After: 1\r\n"},
    {505, "HTTP Version Not Supported", ""},
};

/* A browser refuses a module script, a style sheet or WebAssembly with the wrong type. As in
 * Debian's /etc/mime.types, with which a test compares. */
static const struct {
    const char *suffix, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".htm", "text/html; charset=utf-8"},
    {".txt", "text/plain; charset=utf-8"},
    {".css", "text/css"},
    {".js", "text/javascript"},
    {".mjs", "text/javascript"},
    {".json", "application/json"},
    {".wasm", "application/wasm"},
    {".webmanifest", "application/manifest+json"},
    {".xml", "application/xml"},
    {".xhtml", "application/xhtml+xml"},
    {".vtt", "text/vtt"},
    {".pdf", "application/pdf"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".jpeg", "image/jpeg"},
    {".gif", "image/gif"},
    {".svg", "image/svg+xml"},
    {".ico", "image/vnd.microsoft.icon"},
    {".webp", "image/webp"},
    {".avif", "image/avif"},
    {".woff", "font/woff"},
    {".woff2", "font/woff2"},
    {".ttf", "font/ttf"},
    {".otf", "font/otf"},
    {".mp4", "video/mp4"},
    {".webm", "video/webm"},
    {".mp3", "audio/mpeg"},
    {".ogg", "audio/ogg"},
    {".gz", "application/gzip"},
    {".zip", "application/zip"},
    {".epub", "application/epub+zip"},
};

/* ---- writing the head. It always fits: all fields but Location have a bound, and Location is
 * checked */

static void put_bytes(struct reply *r, const char *bytes, size_t len)
{
    if (len <= sizeof r->head - r->head_len) {
        memcpy(r->head + r->head_len, bytes, len);
        r->head_len += len;
    }
}

static void put(struct reply *r, const char *text)
{
    put_bytes(r, text, strlen(text));
}

static void put_number(struct reply *r, long long n)
{
    char digits[24];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    put_bytes(r, digits + at, sizeof digits - at);
}

static void put_date(struct reply *r, const char *name, time_t t)
{
    char date[HTTP_DATE_SIZE];

    http_date_format(t, date);
    put(r, name);
    put_bytes(r, date, HTTP_DATE_SIZE - 1);
    put(r, "\r\n");
}

static size_t find_status(int status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status)
            return i;
    return find_status(500);
}

/* Status line and the fields every reply has. Returns the time that is its date. */
static time_t head_begin(struct reply *r, const struct request *req, int status)
{
    size_t i = find_status(status);
    time_t now = time(NULL);

    r->status = status;
    r->keep_alive = req != NULL && req->keep_alive;
    r->fd = -1;
    r->offset = r->end = 0;
    r->head_len = 0;
    put(r, "HTTP/1.1 ");
    put_number(r, status);
    put(r, " ");
    put(r, statuses[i].text);
    put(r, "\r\n");
    put_date(r, "Date: ", now);
    put(r, statuses[i].fields);
    return now;
}

/* The end of the head. HTTP/1.1 stays open unless told otherwise, HTTP/1.0 closes unless told
 * otherwise. */
void reply_connection(struct reply *r, const struct request *req)
{
    off_t length = (off_t)r->head_len + (r->end - r->offset);

    r->may_close = req != NULL && req->is_last && length <= REPLY_SHORT;
    if (!r->keep_alive)
        put(r, "Connection: close\r\n");
    else if (req->minor == 0)
        put(r, "Connection: keep-alive\r\n");
    put(r, "\r\n");
}

/* The end of the head of an error, and its text. */
static void finish_error(struct reply *r, const struct request *req)
{
    const char *text = statuses[find_status(r->status)].text;

    put(r, "Content-Type: text/plain; charset=utf-8\r\nContent-Length: ");
    put_number(r, 5 + (long long)strlen(text)); /* "404 ", text, newline */
    put(r, "\r\n");
    reply_connection(r, req);
    if (req != NULL && req->method == HTTP_HEAD)
        return;
    put_number(r, r->status);
    put(r, " ");
    put(r, text);
    put(r, "\n");
}

void reply_error(struct reply *r, const struct request *req, int status)
{
    head_begin(r, req, status);
    finish_error(r, req);
}

void reply_errno(struct reply *r, const struct request *req, int error)
{
    switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN: /* folders on the way were renamed each time it was tried */
    case EINTR:
        reply_error(r, req, 503); /* will pass */
        break;
    case EACCES:
    case EPERM:
    case EXDEV:      /* out of the docroot */
    case ELOOP:      /* over a link that is not followed */
    case ENXIO:      /* a socket, or a device without a driver */
    case EOPNOTSUPP: /* a socket, on the BSDs */
        reply_error(r, req, 403);
        break;
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
    case EILSEQ: /* a name that this file system can give to no file */
        reply_error(r, req, 404);
        break;
    default: /* EIO, ESTALE: the file may well be there, and no cache may learn that it is not */
        reply_error(r, req, 500);
    }
}

/* ---- from the target to a path */

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Copies `from` up to its query into path with %XX resolved. Returns the length, or minus the
 * status. */
static int decode(struct slice from, char path[REPLY_PATH_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < from.len && from.at[i] != '?'; i++) {
        char c = from.at[i];
        if (c == '%') {
            if (i + 2 >= from.len || hex(from.at[i + 1]) < 0 || hex(from.at[i + 2]) < 0)
                return -400;
            c = (char)(hex(from.at[i + 1]) * 16 + hex(from.at[i + 2]));
            i += 2;
        }
        if (c == '\0')
            return -400;
        if (n + sizeof "index.html" >= REPLY_PATH_MAX)
            return -414;
        path[n++] = c;
    }
    path[n] = '\0';
    return (int)n;
}

static bool has_dot_dot(const char *path)
{
    for (const char *at = path; (at = strstr(at, "..")) != NULL; at += 2)
        if ((at == path || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
            return true;
    return false;
}

/*
 * "/a//b/./c" becomes "a/b/c": to the file system they are the same, and a cache by name
 * (15-slashdot) would hold one file under as many names as a client can make up. A "." at the end
 * names a folder, as a slash does. In place; returns the new length.
 */
static size_t collapse(char *path)
{
    char *to = path;

    for (const char *at = path; *at == '/';) {
        size_t n = strcspn(++at, "/");
        if (n > 1 || (n == 1 && *at != '.')) {
            memmove(to, at, n);
            to += n;
            if (at[n] == '/')
                *to++ = '/';
        }
        at += n;
    }
    *to = '\0';
    return (size_t)(to - path);
}

int reply_path(const struct request *req, char path[REPLY_PATH_MAX])
{
    if (req->method == HTTP_UNKNOWN)
        return 501;
    if (req->method == HTTP_NOT_ALLOWED)
        return 405;
    int length = decode(req->target, path);
    if (length < 0)
        return -length;
    if (path[0] != '/' || req->target.at[0] != '/') /* "%2fa" is no path either */
        return 400;
    if (has_dot_dot(path)) /* open_below() refuses ".." that leads out; refuse it everywhere */
        return 403;
    size_t n = collapse(path);
    if (n == 0 || path[n - 1] == '/')
        memcpy(path + n, "index.html", sizeof "index.html");
    return 0;
}

/* ---- from a file to its reply */

static const char *content_type(const char *path)
{
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot != NULL && i < sizeof types / sizeof *types; i++)
        if (strcasecmp(dot, types[i].suffix) == 0)
            return types[i].type;
    return "application/octet-stream";
}

/* Reads the digits at *at and moves *at past them; -1 if there are none. A number that is too large
 * becomes the largest. */
static off_t parse_position(const char **at, const char *end)
{
    off_t n = -1;

    for (; *at < end && **at >= '0' && **at <= '9'; ++*at) {
        if (n < 0)
            n = 0;
        n = n > (LLONG_MAX - 9) / 10 ? LLONG_MAX - 9 : n * 10 + (**at - '0');
    }
    return n;
}

/*
 * "bytes=first-last", "bytes=first-" or "bytes=-length" of a file of `size` bytes. Returns 206 with
 * first <= last, 416, or 200: a list of ranges and what is malformed are ignored (RFC 9110
 * section 14.2).
 */
static int parse_range(struct slice s, off_t size, off_t *first, off_t *last)
{
    const char *at = s.at + 6, *end = s.at + s.len;

    if (s.len < 8 || strncasecmp(s.at, "bytes=", 6) != 0)
        return 200;
    off_t from = parse_position(&at, end);
    if (at == end || *at++ != '-')
        return 200;
    off_t to = parse_position(&at, end);
    if (at != end || (from < 0 && to < 0) || (from >= 0 && to >= 0 && to < from))
        return 200;
    if (from < 0) { /* "-length": the last bytes */
        if (to == 0)
            return 416;
        from = to < size ? size - to : 0;
        to = size - 1;
    }
    if (from >= size)
        return 416;
    *first = from;
    *last = to >= 0 && to < size ? to : size - 1;
    return 206;
}

/* A malformed date counts as absent. */
static bool has_date(struct slice s, time_t *t)
{
    return s.at != NULL && http_date_parse(s.at, s.len, t);
}

/*
 * Returns 200 if the request is to be carried out, else 304 or 412, in the order of RFC 9110
 * section 13.2.2. No file has an ETag here: a list never matches, "*" does. A field about ETags
 * overrides the one about dates, also if its list is empty.
 */
static int precondition(const struct request *req, time_t modified)
{
    time_t t;

    if (req->if_match.at != NULL) {
        if (!slice_is(req->if_match, "*"))
            return 412;
    } else if (has_date(req->if_unmodified_since, &t) && modified > t) {
        return 412;
    }
    if (req->if_none_match.at != NULL)
        return slice_is(req->if_none_match, "*") ? 304 : 200;
    return has_date(req->if_modified_since, &t) && modified <= t ? 304 : 200;
}

/* A range counts only if the client has a part of this same file: the dates must be equal. */
static bool range_applies(const struct request *req, time_t modified)
{
    time_t known;

    if (req->method != HTTP_GET || req->range.at == NULL)
        return false;
    return req->if_range.at == NULL || (has_date(req->if_range, &known) && known == modified);
}

static void put_content_range(struct reply *r, off_t first, off_t last, off_t size)
{
    put(r, "Content-Range: bytes ");
    if (r->status == 206) {
        put_number(r, first);
        put(r, "-");
        put_number(r, last);
    } else {
        put(r, "*");
    }
    put(r, "/");
    put_number(r, size);
    put(r, "\r\n");
}

static void regular_file(struct reply *r, const struct request *req, int fd, const struct stat *st,
                         const char *path)
{
    off_t first = 0, last = st->st_size - 1;
    int status = precondition(req, st->st_mtime);

    if (status == 412) {
        reply_error(r, req, status);
        return;
    }
    if (status == 200 && range_applies(req, st->st_mtime))
        status = parse_range(req->range, st->st_size, &first, &last);
    time_t now = head_begin(r, req, status);
    if (status == 206 || status == 416)
        put_content_range(r, first, last, st->st_size);
    if (status == 416) {
        finish_error(r, req);
        return;
    }
    /* Servers count the bytes of head and body together, in an off_t. */
    if (status != 304 && last - first >= LLONG_MAX - REPLY_HEAD_MAX) {
        reply_error(r, req, 500);
        return;
    }
    /* No Last-Modified of this second or later: the file may change again and keep that date, and a
     * client that asks with it would get a wrong 304 (RFC 9110 section 8.8.2). */
    if (st->st_mtime < now)
        put_date(r, "Last-Modified: ", st->st_mtime);
    if (status != 304) {
        put(r, "Content-Type: ");
        put(r, content_type(path));
        put(r, "\r\nContent-Length: ");
        put_number(r, last - first + 1);
        put(r, "\r\nAccept-Ranges: bytes\r\n");
    }
    if (status != 304 && req->method != HTTP_HEAD && first <= last) {
        r->fd = fd;
        r->offset = first;
        r->end = last + 1;
    }
    reply_connection(r, req);
}

/*
 * "/folder" without its slash: relative links in its page would be wrong, so the client is
 * redirected to "/folder/", with its query. Location has only one slash in front: "//name/" is the
 * address of another host. A target that ends in a slash is here because its index.html is a
 * folder; a redirect would loop.
 */
static void folder(struct reply *r, const struct request *req)
{
    struct slice target = req->target;

    while (target.len > 1 && target.at[1] == '/') {
        target.at++;
        target.len--;
    }
    const char *query = memchr(target.at, '?', target.len);
    size_t path_len = query != NULL ? (size_t)(query - target.at) : target.len;
    if (target.at[path_len - 1] == '/') {
        reply_error(r, req, 404);
        return;
    }
    if (target.len > REPLY_HEAD_MAX / 2) { /* our Location would be too long for the head */
        reply_error(r, req, 414);
        return;
    }
    head_begin(r, req, 301);
    put(r, "Location: ");
    put_bytes(r, target.at, path_len);
    put(r, "/");
    put_bytes(r, target.at + path_len, target.len - path_len);
    put(r, "\r\n");
    finish_error(r, req);
}

void reply_found(struct reply *r, const struct request *req, int fd, const struct stat *st,
                 const char *path)
{
    if (S_ISREG(st->st_mode))
        regular_file(r, req, fd, st, path);
    else if (S_ISDIR(st->st_mode))
        folder(r, req);
    else
        reply_error(r, req, 403); /* a FIFO or a device: read() could wait for ever, or act on it */
}

void reply_file(struct reply *r, const struct request *req, int fd, const struct stat *st,
                const char *path)
{
    reply_found(r, req, fd, st, path);
    if (r->fd < 0)
        close(fd);
}

static bool keeps_spare;
static int spare_fd = -1;

static void close_spare(void)
{
    if (spare_fd >= 0)
        close(spare_fd);
    spare_fd = -1;
}

bool reply_keep_spare(bool keep, int docroot_fd)
{
    keeps_spare = keep;
    if (!keep)
        close_spare();
    else if (spare_fd < 0)
        spare_fd = fcntl(docroot_fd, F_DUPFD_CLOEXEC, 0);
    return !keep || spare_fd >= 0;
}

int reply_open(int docroot_fd, const char *path, int (*open_by)(int docroot_fd, const char *path))
{
    if (keeps_spare && reply_keep_spare(true, docroot_fd)) {
        int fd = open_by(docroot_fd, path);
        if (fd >= 0 || (errno != EMFILE && errno != ENFILE))
            return fd;
        close_spare();
    }
    return open_by(docroot_fd, path);
}

void reply_plan(struct reply *r, const struct request *req, int docroot_fd)
{
    char path[REPLY_PATH_MAX];
    struct stat st;
    int status = reply_path(req, path);

    if (status != 0) {
        reply_error(r, req, status);
        return;
    }
    int fd = reply_open(docroot_fd, path, open_below);
    if (fd < 0) {
        reply_errno(r, req, errno);
    } else if (fstat(fd, &st) < 0) {
        reply_errno(r, req, errno);
        close(fd);
    } else {
        reply_file(r, req, fd, &st, path);
    }
}

void reply_log(const struct reply *r, const struct request *req)
{
    char request_line[LOG_LINE_MAX - 200], text[LOG_LINE_MAX];

    log_escape(request_line, sizeof request_line, req->line.at, req->line.len);
    snprintf(text, sizeof text, "\"%s\" %d %lld", request_line, r->status,
             (long long)(r->end - r->offset));
    log_line(text);
}

ssize_t reply_next(const struct reply *r, off_t sent, char *to, size_t size)
{
    off_t head = (off_t)r->head_len;
    size_t len = sent < head ? (size_t)(head - sent) : 0;
    off_t at = r->offset + (sent > head ? sent - head : 0);
    ssize_t n = 0;

    memcpy(to, r->head + r->head_len - len, len);
    if (r->fd < 0 || at >= r->end)
        return (ssize_t)len;
    size_t most = r->end - at < (off_t)(size - len) ? (size_t)(r->end - at) : size - len;
    do
        n = pread(r->fd, to + len, most, at);
    while (n < 0 && errno == EINTR);
    return n > 0 ? (ssize_t)len + n : -1;
}
