/* Reads one reply out of a byte stream: its head, its body by length, chunks or end, and both. */
#ifndef HAMMER_REPLY_H
#define HAMMER_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The head of an HTTP/1.x response: bytes in, meaning out. No I/O, no memory, no state.
 */

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

/*
 * Where the body of a reply ends: by length, by chunks, or by the end of the connection.
 * Consumes bytes and counts them; keeps none.
 */

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

/*
 * One reply, from its first byte to its last, however the bytes are cut.
 *
 * A head that arrives in one piece (nearly always) is parsed where it lies in the caller's
 * buffer. Only one that arrives in pieces is copied, into memory that the reply keeps for the
 * next time.
 */

enum { REPLY_MAX_HEAD = 8192 };

enum reply_result {
    REPLY_MORE,
    REPLY_COMPLETE,
    REPLY_BAD_HEAD,
    REPLY_BAD_BODY, /* broken chunked framing */
    REPLY_EXCESS,   /* bytes after the end of the reply, which nobody asked for */
    REPLY_SHORT,    /* the connection ended before the reply did */
    REPLY_NO_MEMORY
};

/* All zero is a valid reply before reply_begin. */
struct reply {
    struct response response; /* valid once in_body */
    struct body body;
    bool in_body;
    bool head_only;
    uint64_t received; /* bytes, head and framing included */
    char *partial;     /* owned; REPLY_MAX_HEAD bytes or NULL */
    size_t partial_length;
};

void reply_begin(struct reply *reply, bool head_only);
enum reply_result reply_feed(struct reply *reply, const char *data, size_t length);

/* The peer has closed: REPLY_COMPLETE if that is how this body ends, else REPLY_SHORT. */
enum reply_result reply_end(const struct reply *reply);

void reply_free(struct reply *reply);

#endif
