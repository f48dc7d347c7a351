/*
 * send_reply.h: a reply on its way into a socket that does not block. Later servers send by other
 * means, with these functions in files of their own.
 */
#ifndef SEND_REPLY_H
#define SEND_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "reply.h"

struct conn;

struct sending {
    struct reply reply; /* its offset moves on with what is sent of the file */
    size_t head_sent;
    long step;     /* bytes sent in the step in hand: conn.c */
    bool has_body; /* the request may be followed by bytes that nobody will read */
    bool found;    /* the file has been looked up: `reply` is a reply */
    bool is_read;  /* the client has taken enough to show that it reads: unsent.h */
    off_t begin;   /* reply.offset at first */
    bool corked;   /* the kernel has all of it, and waits for more or for the end (MSG_MORE) */
    struct conn *conn;
    void *held;  /* what the sending holds beside the open file: NULL at first, and here */
    size_t room; /* bytes of `rest` */
    char rest[]; /* room for what has come after the request: more is not read meanwhile */
};

enum sent {
    SENT_ALL,
    SENT_BLOCKED, /* send() gave EAGAIN */
    SENT_BUDGET,  /* as much as was allowed */
    SENT_DISK,    /* the file has to be waited for: WANT_DISK */
    SENT_FAILED,  /* the client is gone, or the file is shorter than promised */
};

/* Sends what the socket takes, and stops soon after *budget bytes, which it counts down. */
enum sent send_reply(int fd, struct sending *s, long *budget);

/* Closes the file, and gives back what is held; sent or not. */
void send_end(struct sending *s);

#endif
