/*
 * send_path.h: how a reply gets from the file to the socket. Two questions, each with several
 * answers, and every answer is a file of its own here: how the body comes (body_read.c,
 * body_mmap.c, ...), and how the head goes out before it (join_two.c, join_more.c, ...). Any two
 * go together, but that writev() needs a body that comes to memory.
 */
#ifndef SEND_PATH_H
#define SEND_PATH_H

#include <sys/types.h>

#include "05b-nonblocking/conn.h"

struct body {
    const char *name;
    long turn; /* bytes; 0: as many as all servers give to one before it is another's turn */
    /*
     * Sends of the file from exchange_offset() on, at most `most` bytes. Returns how many, which
     * the caller adds to x->sent; 0 if the file has become too short; -1 with errno.
     */
    ssize_t (*send)(int fd, struct exchange *x, size_t most);
    /*
     * Shows the next bytes in memory, with the same answers; NULL where they never come to
     * memory.
     */
    ssize_t (*show)(struct exchange *x, size_t most, const char **bytes);
    void (*end)(struct exchange *x); /* gives x->held back, which may be NULL */
    void (*prepare)(void);           /* before the first; ends the program if it fails; or NULL */
};

struct join {
    const char *name;
    bool needs_memory;     /* the body's show() */
    void (*begin)(int fd); /* a connection; NULL: nothing to do */
    /*
     * Sends the rest of the head, perhaps with the first of the body. Returns how many bytes of
     * both, 0 where the file has become too short, or -1 with errno.
     */
    ssize_t (*send_head)(int fd, struct exchange *x, const struct body *body);
    void (*end)(int fd); /* a reply with a body; NULL: nothing to do */
};

extern const struct body body_read, body_mmap, body_sendfile, body_splice;
extern const struct join join_two, join_nodelay, join_writev, join_cork, join_more;

#define SEND_PATH_HELP                                                                             \
    "how replies are sent, default more+sendfile: HEAD+BODY, where HEAD is two, nodelay,\n"        \
    "              writev, cork or more, and BODY is read, mmap, sendfile or splice"

/* How all replies are sent from now on; NULL: the default. A name that is none, or that this system
 * does not have, ends the program. */
void send_path_choose(const char *name);

/* The replies of this connection, which is new, are sent that way. */
void send_path_begin(struct conn *c);

#endif
