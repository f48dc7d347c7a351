/*
 * One reply, from its first byte to its last, however the bytes are cut.
 *
 * A head that arrives in one piece (nearly always) is parsed where it lies in the caller's
 * buffer. Only one that arrives in pieces is copied, into memory that the reply keeps for the
 * next time.
 */
#ifndef HAMMER_REPLY_H
#define HAMMER_REPLY_H

#include "body.h"
#include "response.h"

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
