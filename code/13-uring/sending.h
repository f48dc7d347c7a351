/*
 * sending.h: a request that is complete, and its reply, as far as they can be dealt with by
 * thinking alone. What is to be opened, read and sent is said here, and done by steps.c.
 */
#ifndef SENDING_H
#define SENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "13-uring/buffers.h"
#include "http_parse.h"
#include "reply.h"

struct sending {
    struct request request;
    int used;           /* bytes of conn.in it takes; or minus the status that refuses it */
    int file;           /* -1: none is open */
    int tries;          /* to open it */
    enum lane lane;     /* of the next step */
    long long asked;    /* since when it waits for the disk, by now_ms() */
    bool untold;        /* the file system cannot tell what is in memory ... */
    bool in_memory;     /* ... but everything is */
    struct statx found; /* written by the kernel: it must not move */
    struct reply reply; /* its status is 0 until it is planned; its offset moves on */
    off_t begin;        /* reply.offset at first */
    bool is_read;       /* the client has taken enough to show that it reads: unsent.h */
    size_t head_sent;
    size_t len,
        of_file; /* of the piece that is being sent; and how much of it the file is to fill */
    long step;   /* bytes sent in the step in hand */
};

/* `used` is what http_parse() returned, not 0. NULL without memory. */
struct sending *sending_new(const struct request *req, int used);

/* True with the path of what is to be opened; false if there is nothing to open: the reply is
 * planned. */
bool sending_path(struct sending *out, char path[REPLY_PATH_MAX]);

/* Plan the reply: for what was found, or for the errno that was. */
void sending_found(struct sending *out, const char *path);
void sending_failed(struct sending *out, int error);

/* Begins a piece with what is left of the head, and returns how many bytes of the file belong
 * behind it. */
size_t sending_piece(struct sending *out, char *piece, size_t room);

/* So many bytes of it are out. Returns whether that was the last of the reply. */
bool sending_sent(struct sending *out, size_t n);

/* Whether the client may be about to send something that nobody will read, with `have` bytes
 * here. */
bool sending_leaves_unread(const struct sending *out, size_t have);

#endif
