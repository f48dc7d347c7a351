/* Addresses; see address.h. */
#include "address.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

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
