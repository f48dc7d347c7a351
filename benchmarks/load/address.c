/* From an address to a connection; see address.h. */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- address ------------------------------------------------------------------------------ */

enum { MAX_SOURCES = 65536 };

bool endpoint_parse(struct endpoint *endpoint, const char *host, uint16_t port)
{
    struct in_addr four;
    struct in6_addr six;

    memset(endpoint, 0, sizeof *endpoint);
    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &four) == 1) {
        struct sockaddr_in *in = (struct sockaddr_in *)&endpoint->address;
        *in =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = four};
        endpoint->length = sizeof *in;
        return true;
    }
    if (inet_pton(AF_INET6, host, &six) == 1) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&endpoint->address;
        *in6 = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = six};
        endpoint->length = sizeof *in6;
        return true;
    }
    return false;
}

static bool is_loopback_v4(struct in_addr address)
{
    return ntohl(address.s_addr) >> 24 == 127;
}

bool endpoint_is_loopback(const struct endpoint *endpoint)
{
    if (endpoint->address.ss_family == AF_INET)
        return is_loopback_v4(((const struct sockaddr_in *)&endpoint->address)->sin_addr);
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&endpoint->address)->sin6_addr);
}

bool endpoint_same_host(const struct endpoint *a, const struct endpoint *b)
{
    if (a->address.ss_family != b->address.ss_family)
        return false;
    if (a->address.ss_family == AF_INET)
        return ((const struct sockaddr_in *)&a->address)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)&b->address)->sin_addr.s_addr;
    return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)&a->address)->sin6_addr,
                              &((const struct sockaddr_in6 *)&b->address)->sin6_addr);
}

/* Parses [start, end) as one IPv4 loopback address, in host byte order. */
static const char *parse_source(const char *start, const char *end, uint32_t *address)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr parsed;
    size_t length = (size_t)(end - start);

    if (length >= sizeof text)
        return "not an IPv4 address";
    memcpy(text, start, length);
    text[length] = '\0';
    if (inet_pton(AF_INET, text, &parsed) != 1)
        return "not an IPv4 address";
    if (!is_loopback_v4(parsed))
        return "a source address must lie in 127.0.0.0/8";
    *address = ntohl(parsed.s_addr);
    return NULL;
}

static const char *add_range(struct source_list *list, uint32_t first, uint32_t last)
{
    if (last < first)
        return "the range ends before it begins";
    size_t more = (size_t)(last - first) + 1;
    if (more > MAX_SOURCES - list->count)
        return "more than 65536 source addresses";
    struct in_addr *items = realloc(list->items, (list->count + more) * sizeof *items);
    if (!items)
        return "out of memory";
    list->items = items;
    for (size_t i = 0; i < more; i++)
        items[list->count++].s_addr = htonl(first + (uint32_t)i);
    return NULL;
}

const char *source_list_parse(struct source_list *list, const char *text)
{
    for (;;) {
        const char *end = text + strcspn(text, ",");
        const char *dash = memchr(text, '-', (size_t)(end - text));
        uint32_t first = 0;
        uint32_t last = 0;
        const char *problem = parse_source(text, dash ? dash : end, &first);
        last = first;
        if (!problem && dash)
            problem = parse_source(dash + 1, end, &last);
        if (!problem)
            problem = add_range(list, first, last);
        if (problem || *end == '\0')
            return problem;
        text = end + 1;
    }
}

void source_list_free(struct source_list *list)
{
    free(list->items);
    *list = (struct source_list){0};
}

/* ---- dial --------------------------------------------------------------------------------- */

/*
 * Without IP_BIND_ADDRESS_NO_PORT bind() would choose a port that is free for *every*
 * destination, so 28 000 connections would be the end; with it connect() chooses, and the same
 * port serves again for another address.
 */
static int bind_source(int fd, struct source_list *sources)
{
    int on = 1;
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = sources->items[sources->next]};

    sources->next = (sources->next + 1) % sources->count;
    if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) < 0)
        return -1;
    return bind(fd, (struct sockaddr *)&from, sizeof from);
}

static int prepare(int fd, struct source_list *sources, int receive_buffer)
{
    if (sources->count > 0 && bind_source(fd, sources) < 0)
        return -1;
    if (receive_buffer <= 0)
        return 0;
    return setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
}

int dial(const struct endpoint *endpoint, struct source_list *sources, int receive_buffer)
{
    int fd = socket(endpoint->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (prepare(fd, sources, receive_buffer) == 0 &&
        (connect(fd, (const struct sockaddr *)&endpoint->address, endpoint->length) == 0 ||
         errno == EINPROGRESS))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int dial_result(int fd)
{
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        return errno;
    return error;
}

enum fetch_error dial_error(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return FETCH_CONNECT_REFUSED;
    case ETIMEDOUT:
        return FETCH_CONNECT_TIMEOUT;
    case ECONNRESET:
    case EPIPE:
        return FETCH_CONNECT_RESET;
    case EADDRNOTAVAIL:
    case EADDRINUSE:
        return FETCH_NO_ADDRESS;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
        return FETCH_NO_RESOURCES;
    default:
        return FETCH_CONNECT_OTHER;
    }
}
