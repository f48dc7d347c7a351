/*
 * The URLs to fetch, each kept as the complete request that will be sent for it: the hot path
 * only has to send it.
 */
#ifndef HAMMER_URL_H
#define HAMMER_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"

struct url {
    char *request; /* owned */
    uint32_t request_length;
    uint32_t endpoint;   /* index in url_list.endpoints */
    int64_t body_length; /* of the first good reply, for --check; -1 until then */
};

struct url_list {
    struct url *items;
    size_t count;
    size_t capacity;
    struct endpoint *endpoints; /* the distinct addresses of all URLs */
    size_t endpoint_count;
    char *first;           /* text of the first URL, for the report */
    struct url_list *kept; /* NULL, or a list that gets them too, asked for with keep-alive */
};

/* The pieces of http://HOST[:PORT][/TARGET], pointing into the text. */
struct url_parts {
    const char *host; /* without the brackets of an IPv6 address */
    size_t host_length;
    const char *authority; /* as written: the value of the Host field */
    size_t authority_length;
    const char *target; /* may be empty: then "/" is meant; may begin with '?' */
    size_t target_length;
    uint16_t port;
};

struct request_style {
    bool head;       /* HEAD instead of GET */
    bool keep_alive; /* else "Connection: close" is asked for */
};

/* Returns NULL, or what is wrong with the URL (static text). */
const char *url_parse(struct url_parts *parts, const char *text, size_t length);

/* Adds a URL. Returns NULL, or what is wrong (static text); then the list is as before. */
const char *url_list_add(struct url_list *list, const char *text, size_t length,
                         struct request_style style);

/*
 * Adds every line of `path`; empty lines and lines that begin with '#' do not count. Returns 0,
 * or -1 after writing one line ("FILE:LINE: ...") to `message`.
 */
int url_list_read(struct url_list *list, const char *path, struct request_style style,
                  char *message, size_t message_size);

void url_list_free(struct url_list *list);

#endif
