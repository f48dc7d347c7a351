/*
 * 00-client: fetches one URL and prints its body: the first program of the 2003 talk, with what it
 * left out (a URL, errors, replies of any length).
 *
 * Run:  build/bin/00-client http://127.0.0.1:8080/        -v shows the head of the reply on stderr
 * Exit: 0 the whole body is out; 1 the network, the server (any status but 2xx) or the output
 * failed; 2 usage
 */
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "die.h"
#include "known_state.h"

#define HEAD_MAX 16384

struct url {
    char host[256];
    char port[6];
    char host_field[272]; /* host and port as the Host field has them */
    const char *path;
};

/* Copies text[0..len) into a field of *u, cut to fit; its caller refuses what is too long. */
static void copy(char *to, size_t size, const char *text, size_t len)
{
    snprintf(to, size, "%.*s", (int)len, text);
}

/* What follows the host: nothing, or ":" and a number from 1 to 65535. */
static void parse_port(struct url *u, const char *url, const char *text, const char *end)
{
    size_t digits = text < end ? strspn(text + 1, "0123456789") : 0;

    if (text == end) {
        copy(u->port, sizeof u->port, "80", 2);
        return;
    }
    if (*text != ':' || digits == 0 || digits > 5 || text + 1 + digits != end ||
        atoi(text + 1) < 1 || atoi(text + 1) > 65535)
        die(EXIT_USAGE, "%s: the port is not a number from 1 to 65535", url);
    copy(u->port, sizeof u->port, text + 1, digits);
}

/* http://HOST[:PORT][/PATH]; HOST may be [an IPv6 address]. Ends the program if it is not that. */
static void parse_url(struct url *u, const char *text)
{
    for (const char *at = text; *at != '\0'; at++)
        if (iscntrl((unsigned char)*at) || *at == ' ')
            die(EXIT_USAGE, "the URL has a space or a control character at byte %td", at - text);
    if (strncasecmp(text, "http://", 7) != 0)
        die(EXIT_USAGE, "%s: expected http://HOST[:PORT]/PATH", text);
    const char *host = text + 7;
    size_t len = strcspn(host, "/?#");
    const char *end = host + len;
    bool v6 = *host == '[';
    const char *host_end = v6 ? memchr(host, ']', len) : host + strcspn(host, ":/?#");

    copy(u->host_field, sizeof u->host_field, host, len);
    host += v6;
    if (len >= sizeof u->host || host_end == NULL || host_end == host)
        die(EXIT_USAGE, "%s: no host, or a bad one", text);
    copy(u->host, sizeof u->host, host, (size_t)(host_end - host));
    parse_port(u, text, host_end + v6, end);
    u->path = end;
}

/*
 * connect(2). With SO_SNDTIMEO a process that is stopped and continued is interrupted in it
 * (signal(7)), without any handler. The kernel goes on connecting, and by POSIX a second connect()
 * fails with EALREADY. So this waits for the end of the first one.
 */
static int connect_whole(int fd, const struct addrinfo *a, int timeout)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int error = EINPROGRESS, n = connect(fd, a->ai_addr, a->ai_addrlen);

    if (n == 0 || errno != EINTR)
        return n;
    do
        n = poll(&p, 1, timeout * 1000);
    while (n < 0 && errno == EINTR);
    if (n < 0 ||
        (n > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error}) < 0))
        return -1;
    errno = error; /* EINPROGRESS: the time is up, as connect() would say it */
    return error == 0 ? 0 : -1;
}

/* A name can have several addresses: the first that answers is taken. */
static int connect_to(const struct url *u, int timeout)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    const struct timeval limit = {.tv_sec = timeout};
    struct addrinfo *list;
    int fd = -1;

    int error = getaddrinfo(u->host, u->port, &hints, &list);
    if (error != 0)
        die(EXIT_FAILURE, "%s: %s", u->host, gai_strerror(error));
    for (struct addrinfo *a = list; a != NULL; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
        if (fd < 0)
            continue;
        if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
            connect_whole(fd, a, timeout) == 0)
            break;
        int saved = errno;
        close(fd);
        fd = -1;
        errno = saved;
    }
    freeaddrinfo(list);
    if (fd < 0)
        die_errno("connect %s port %s", u->host, u->port);
    return fd;
}

static void send_all(int fd, const char *at, size_t left)
{
    while (left > 0) {
        ssize_t n = send(fd, at, left, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            die_errno("send");
        at += n;
        left -= (size_t)n;
    }
}

/* HTTP/1.0: the server then sends the body as it is and closes after it. */
static void send_request(int fd, const struct url *u)
{
    const char *slash = *u->path == '/' ? "" : "/";
    int path_len = (int)strcspn(u->path, "#"); /* the fragment is the client's business */
    size_t size = (size_t)path_len + sizeof u->host_field + 128;
    char *request = malloc(size);

    if (request == NULL)
        die_errno("malloc");
    int len =
        snprintf(request, size, "GET %s%.*s HTTP/1.0\r\nHost: %s\r\nConnection: close\r\n\r\n",
                 slash, path_len, u->path, u->host_field);
    send_all(fd, request, (size_t)len);
    free(request);
}

/* Returns the bytes read, 0 at the end of the connection. */
static size_t receive(int fd, char *buf, size_t len)
{
    ssize_t n;

    do
        n = recv(fd, buf, len, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        die(EXIT_FAILURE, "recv: the server is silent");
    if (n < 0)
        die_errno("recv");
    return (size_t)n;
}

/* Reads until the empty line that ends the head. Returns its length; *have also counts body bytes
 * behind it. */
static size_t receive_head(int fd, char *buf, size_t *have)
{
    for (;;) {
        const char *end = memmem(buf, *have, "\r\n\r\n", 4);
        if (end != NULL)
            return (size_t)(end - buf) + 4;
        if (*have == HEAD_MAX)
            die(EXIT_FAILURE, "the head of the reply is longer than %d bytes", HEAD_MAX);
        size_t n = receive(fd, buf + *have, HEAD_MAX - *have);
        if (n == 0)
            die(EXIT_FAILURE, "the connection ended after %zu bytes, in the head of the reply",
                *have);
        *have += n;
    }
}

/* A number from 0 on, of digits alone up to the end of the line; ends the program if it is none. */
static long long parse_length(const char *text, const char *end)
{
    long long n = 0;

    while (*text == ' ' || *text == '\t')
        text++;
    while (end > text && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (text == end || end - text > 18 || (int)strspn(text, "0123456789") < end - text)
        die(EXIT_FAILURE, "the Content-Length of the reply is no number of bytes");
    while (text < end)
        n = n * 10 + (*text++ - '0');
    return n;
}

/* The value of Content-Length, or -1 if the head has none: the end of the connection then ends the
 * body. Two of them, or a Transfer-Encoding, which HTTP/1.0 does not have, end the program. */
static long long content_length(const char *head, size_t len)
{
    static const char length_name[] = "Content-Length:", coding_name[] = "Transfer-Encoding:";
    long long length = -1;
    const char *end;

    for (const char *at = head; (end = memmem(at, len - (size_t)(at - head), "\r\n", 2)) != NULL;
         at = end + 2) {
        if (strncasecmp(at, coding_name, sizeof coding_name - 1) == 0)
            die(EXIT_FAILURE, "the body of the reply has a Transfer-Encoding");
        if (strncasecmp(at, length_name, sizeof length_name - 1) != 0)
            continue;
        if (length >= 0)
            die(EXIT_FAILURE, "the reply has more than one Content-Length");
        length = parse_length(at + sizeof length_name - 1, end);
    }
    return length;
}

/* To a terminal some bytes are commands: they move its cursor, or make it answer as if somebody had
 * typed. They are written as \xNN, and so is all that is not ASCII: such commands can be written in
 * several ways. CR at the end may be one half of a line's end. */
static size_t write_visible(const char *bytes, size_t len, FILE *to)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        bool visible = (c >= ' ' && c <= '~') || c == '\n' || c == '\t';
        bool is_line_end = c == '\r' && (i + 1 == len || bytes[i + 1] == '\n');
        if (!is_line_end && (visible ? putc(c, to) == EOF : fprintf(to, "\\x%02x", c) < 0))
            return i;
    }
    return len;
}

static size_t write_body(const char *bytes, size_t len)
{
    return isatty(STDOUT_FILENO) ? write_visible(bytes, len, stdout)
                                 : fwrite(bytes, 1, len, stdout);
}

static void copy_body(int fd, char *buf, size_t have, long long length)
{
    long long total = 0;

    while (total != length) {
        if (have == 0) /* also at first: the head may have come alone */
            have = receive(fd, buf, HEAD_MAX);
        if (have == 0)
            break;
        if (length >= 0 && (long long)have > length - total)
            have = (size_t)(length - total);
        if (write_body(buf, have) != have)
            die_errno("write to stdout");
        total += (long long)have;
        have = 0;
    }
    if (fflush(stdout) != 0)
        die_errno("write to stdout");
    if (total < length)
        die(EXIT_FAILURE, "the connection ended after %lld of %lld bytes", total, length);
}

static const char usage[] = "usage: 00-client [-t SECONDS] [-v] URL";

static void print_help(void)
{
    printf("%s\n"
           "  fetches http://HOST[:PORT]/PATH and prints its body\n"
           "  -t SECONDS  give up when the server is silent for so long, default 23\n"
           "  -v          print the head of the reply on stderr\n",
           usage);
    exit(EXIT_SUCCESS);
}

/* A number of seconds up to a day; 0 if it is none. */
static int seconds(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);

    return end != text && *end == '\0' && n >= 1 && n <= 86400 ? (int)n : 0;
}

/* Returns the URL; -t and -v go to *timeout and *verbose. */
static const char *parse_arguments(int argc, char **argv, int *timeout, bool *verbose)
{
    int option;

    opterr = 0;
    while ((option = getopt(argc, argv, "t:vh")) != -1) {
        if (option == 'h')
            print_help();
        else if (option == 'v')
            *verbose = true;
        else if (option != 't' || (*timeout = seconds(optarg)) < 1)
            die(EXIT_USAGE, "%s", usage);
    }
    if (argc - optind != 1)
        die(EXIT_USAGE, "%s", usage);
    return argv[optind];
}

/* How many bytes of the reply's beginning may go to a terminal: 20, and no control characters. */
static int printable(const char *text)
{
    int n = 0;

    while (n < 20 && text[n] >= ' ' && text[n] <= '~')
        n++;
    return n;
}

/* "HTTP/1.x NNN": the number, or 0 if the reply does not begin so. */
static int parse_status(const char *head)
{
    bool begins = strncmp(head, "HTTP/1.", 7) == 0 && isdigit((unsigned char)head[7]) &&
                  head[8] == ' ' && strspn(head + 9, "0123456789") == 3;

    return begins ? atoi(head + 9) : 0;
}

int main(int argc, char **argv)
{
    static char buf[HEAD_MAX + 1]; /* one byte more: the head is searched as a string */
    bool verbose = false;
    int timeout = 23;
    struct url u;
    size_t have = 0;

    known_state(argv[0], NULL);
    const char *url = parse_arguments(argc, argv, &timeout, &verbose);
    parse_url(&u, url);

    /* region: main */
    int fd = connect_to(&u, timeout);
    send_request(fd, &u);
    size_t head = receive_head(fd, buf, &have);
    int status = parse_status(buf);
    long long length = content_length(buf, head);
    if (status == 0)
        die(EXIT_FAILURE, "%s: not HTTP/1: the reply begins \"%.*s\"", url, printable(buf), buf);
    if (verbose)
        write_visible(buf, head, stderr);
    memmove(buf, buf + head, have - head);
    copy_body(fd, buf, have - head, length);
    close(fd);
    if (status < 200 || status > 299)
        die(EXIT_FAILURE, "%s: status %d", url, status);
    return EXIT_SUCCESS;
    /* endregion: main */
}
