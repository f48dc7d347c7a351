/* URLs and the requests for them; see url.h. */
#include "url.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_HOST = 64, MAX_URL = 8000, MAX_ENDPOINTS = 4096, DEFAULT_PORT = 80 };

static const char *parse_port(struct url_parts *parts, const char *text, size_t length)
{
    unsigned port = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || port > 65535)
            return "the port is not a number from 1 to 65535";
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    if (length > 0 && (port == 0 || port > 65535))
        return "the port is not a number from 1 to 65535";
    if (length > 0)
        parts->port = (uint16_t)port;
    return NULL;
}

static const char *parse_authority(struct url_parts *parts)
{
    const char *text = parts->authority;
    const char *end = text + parts->authority_length;
    const char *host_end = memchr(text, ':', parts->authority_length);

    parts->host = text;
    if (text < end && *text == '[') {
        const char *bracket = memchr(text, ']', parts->authority_length);
        if (!bracket)
            return "the address lacks its ']'";
        parts->host = text + 1;
        parts->host_length = (size_t)(bracket - parts->host);
        host_end = bracket + 1 < end ? bracket + 1 : NULL;
        if (host_end && *host_end != ':')
            return "only a port may follow the ']'";
    } else {
        parts->host_length = (size_t)((host_end ? host_end : end) - text);
    }
    return host_end ? parse_port(parts, host_end + 1, (size_t)(end - host_end - 1)) : NULL;
}

const char *url_parse(struct url_parts *parts, const char *text, size_t length)
{
    static const char scheme[] = "http://";
    const size_t skip = sizeof scheme - 1;

    if (length > MAX_URL)
        return "longer than 8000 bytes";
    if (length < skip || strncasecmp(text, scheme, skip) != 0)
        return "does not begin with http://";
    for (size_t i = 0; i < length; i++) {
        if (text[i] <= ' ' || text[i] >= 0x7f)
            return "contains a byte that must be percent-encoded";
        if (text[i] == '#')
            return "contains a fragment, which is never sent";
    }
    const char *end = text + length;
    *parts = (struct url_parts){.authority = text + skip, .port = DEFAULT_PORT};
    parts->target = parts->authority;
    while (parts->target < end && *parts->target != '/' && *parts->target != '?')
        parts->target++;
    parts->authority_length = (size_t)(parts->target - parts->authority);
    parts->target_length = (size_t)(end - parts->target);
    return parse_authority(parts);
}

/* Finds or adds the endpoint; the last one first, for lists usually have one or few. */
static const char *intern_endpoint(struct url_list *list, const struct endpoint *endpoint,
                                   uint32_t *index)
{
    for (size_t i = list->endpoint_count; i-- > 0;)
        if (memcmp(&list->endpoints[i], endpoint, sizeof *endpoint) == 0) {
            *index = (uint32_t)i;
            return NULL;
        }
    if (list->endpoint_count == MAX_ENDPOINTS)
        return "more than 4096 different addresses and ports";
    struct endpoint *more = realloc(list->endpoints, (list->endpoint_count + 1) * sizeof *more);
    if (!more)
        return "out of memory";
    list->endpoints = more;
    more[list->endpoint_count] = *endpoint;
    *index = (uint32_t)list->endpoint_count++;
    return NULL;
}

static const char *build_request(struct url *url, const struct url_parts *parts,
                                 struct request_style style)
{
    const char *slash = parts->target_length > 0 && *parts->target == '/' ? "" : "/";
    int n =
        asprintf(&url->request, "%s %s%.*s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: hammer\r\n%s\r\n",
                 style.head ? "HEAD" : "GET", slash, (int)parts->target_length, parts->target,
                 (int)parts->authority_length, parts->authority,
                 style.keep_alive ? "" : "Connection: close\r\n");
    if (n < 0) {
        url->request = NULL;
        return "out of memory";
    }
    url->request_length = (uint32_t)n;
    return NULL;
}

static const char *make_room(struct url_list *list)
{
    if (list->count < list->capacity)
        return NULL;
    if (list->count == UINT32_MAX / 2)
        return "too many URLs";
    size_t capacity = list->capacity ? list->capacity * 2 : 16;
    struct url *items = realloc(list->items, capacity * sizeof *items);
    if (!items)
        return "out of memory";
    list->items = items;
    list->capacity = capacity;
    return NULL;
}

const char *url_list_add(struct url_list *list, const char *text, size_t length,
                         struct request_style style)
{
    struct url_parts parts;
    struct endpoint endpoint;
    struct url url = {.body_length = -1};
    char host[MAX_HOST];

    const char *problem = url_parse(&parts, text, length);
    if (problem)
        return problem;
    if (parts.host_length == 0 || parts.host_length >= sizeof host)
        return "the host is not a numeric address or localhost";
    memcpy(host, parts.host, parts.host_length);
    host[parts.host_length] = '\0';
    if (!endpoint_parse(&endpoint, host, parts.port))
        return "the host is not a numeric address or localhost";
    if ((problem = make_room(list)) || (problem = intern_endpoint(list, &endpoint, &url.endpoint)))
        return problem;
    if (!list->first && !(list->first = strndup(text, length)))
        return "out of memory";
    if ((problem = build_request(&url, &parts, style)))
        return problem;
    list->items[list->count++] = url;
    style.keep_alive = true;
    return list->kept ? url_list_add(list->kept, text, length, style) : NULL;
}

static size_t trimmed_length(const char *line, size_t length)
{
    while (length > 0 && memchr("\r\n \t", line[length - 1], 4))
        length--;
    return length;
}

int url_list_read(struct url_list *list, const char *path, struct request_style style,
                  char *message, size_t message_size)
{
    const char *problem = NULL;
    char *line = NULL;
    size_t size = 0;
    size_t number = 0;
    ssize_t length;
    FILE *file = fopen(path, "re");

    if (!file) {
        snprintf(message, message_size, "%.400s: %s", path, strerror(errno));
        return -1;
    }
    while (!problem && (length = getline(&line, &size, file)) >= 0) {
        size_t n = trimmed_length(line, (size_t)length);
        number++;
        if (n > 0 && line[0] != '#')
            problem = url_list_add(list, line, n, style);
    }
    if (problem)
        snprintf(message, message_size, "%.400s:%zu: %s", path, number, problem);
    else if (ferror(file))
        snprintf(message, message_size, "%.400s: %s", path, strerror(errno));
    int result = problem || ferror(file) ? -1 : 0;
    free(line);
    fclose(file); /* opened for reading: nothing can be lost here */
    return result;
}

void url_list_free(struct url_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].request);
    free(list->items);
    free(list->endpoints);
    free(list->first);
    *list = (struct url_list){0};
}
