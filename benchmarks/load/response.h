/*
 * The head of an HTTP/1.x response: bytes in, meaning out. No I/O, no memory, no state.
 */
#ifndef HAMMER_RESPONSE_H
#define HAMMER_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RESPONSE_MAX_LENGTH (INT64_MAX / 16)

struct response {
    int status;             /* 100..599 */
    int64_t content_length; /* -1: none given */
    bool chunked;
    bool persistent; /* the server will take another request on this connection */
};

/*
 * Returns >0: the head is complete and that many bytes long; 0: more bytes are needed, call
 * again with all of them; -1: this is not an HTTP/1.0 or 1.1 response head that frames its
 * body in a way we can follow. `response` is valid only after >0.
 *
 * Strict where leniency would hide a server's mistake: lines end in CRLF, no folding, no space
 * before a colon, no two different lengths.
 */
ssize_t response_parse(struct response *response, const char *data, size_t length);

#endif
