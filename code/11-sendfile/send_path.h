/*
 * send_path.h: how a reply gets from the file to the socket. There are several ways to send the
 * body (body_read.c, body_mmap.c, ...) and several to send the head before it (join_two.c,
 * join_more.c, ...), a file for each. Any two go together, except that writev() needs a body in
 * memory.
 */
#ifndef SEND_PATH_H
#define SEND_PATH_H

#include <sys/types.h>

#include "05b-nonblocking/conn.h"

/* How a file is sent. end() and prepare() may be NULL, show() if the body is never in memory, and
 * send() where the system does not have it. */
struct body {
    const char *name;
    long turn; /* bytes that a connection may send in a turn; 0: TURN_BYTES of conn.c */
    /*
     * Sends of the file from exchange_offset() on, at most `most` bytes. Returns how many, which
     * the caller adds to x->sent; 0 if the file has become too short; -1 with errno.
     */
    ssize_t (*send)(int fd, struct exchange *x, size_t most);
    /* Points *bytes at the next bytes in memory; returns as send() does. NULL if this body
     * is never in memory. */
    ssize_t (*show)(struct exchange *x, size_t most, const char **bytes);
    void (*end)(struct exchange *x); /* frees x->held, if it is not NULL */
    void (*prepare)(void);           /* once, at the start; ends the program if it fails */
};

/* How the head joins it. begin() and end() may be NULL. */
struct join {
    const char *name;
    bool needs_memory;     /* the body's show() */
    void (*begin)(int fd); /* of a new connection */
    /*
     * Sends the rest of the head, perhaps with the first of the body. Returns how many bytes of
     * both, 0 where the file has become too short, or -1 with errno.
     */
    ssize_t (*send_head)(int fd, struct exchange *x, const struct body *body);
    void (*end)(int fd); /* when a reply with a body is sent */
};

extern const struct body body_read, body_mmap, body_sendfile, body_splice;
extern const struct join join_two, join_nodelay, join_writev, join_cork, join_more;

#define SEND_PATH_HELP                                                                             \
    "how replies are sent, default more+sendfile: HEAD+BODY, where HEAD is two, nodelay,\n"        \
    "              writev, cork or more, and BODY is read, mmap, sendfile or splice"

/* Chooses how all replies are sent; NULL: the default. A name that is unknown, or that this system
 * lacks, ends the program. */
void send_path_choose(const char *name);

/* For a new connection: its replies are sent that way. */
void send_path_begin(struct conn *c);

#endif
