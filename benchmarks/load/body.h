/*
 * Where the body of a reply ends: by length, by chunks, or by the end of the connection.
 * Consumes bytes and counts them; keeps none.
 */
#ifndef HAMMER_BODY_H
#define HAMMER_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "response.h"

enum body_kind { BODY_BY_LENGTH, BODY_BY_CHUNKS, BODY_BY_CLOSE };

enum chunk_state {
    CHUNK_SIZE_FIRST, /* at least one digit must follow */
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER_START, /* at the start of a trailer line */
    CHUNK_TRAILER,
    CHUNK_LAST_LF
};

struct body {
    enum body_kind kind;
    enum chunk_state chunk;
    uint64_t left;  /* of the body, or of the current chunk */
    uint64_t bytes; /* of content so far, without the framing */
};

enum body_result { BODY_BAD = -1, BODY_MORE = 0, BODY_COMPLETE = 1 };

/* `head_only`: the request was HEAD, so no body follows whatever the head says. */
void body_begin(struct body *body, const struct response *response, bool head_only);

/* Consumes up to `length` bytes and says in *used how many; fewer only if complete or bad. */
enum body_result body_feed(struct body *body, const char *data, size_t length, size_t *used);

#endif
