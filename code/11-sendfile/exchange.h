/*
 * exchange.h: the connection of 05b-nonblocking/conn.c, for servers whose replies are found and
 * sent by other means: by the kernel, by threads, out of a table. What differs is behind three
 * pointers. What is here that was not there: a reply may have to wait for the disk, during which
 * the client is not to blame and has no deadline; and an exchange is kept for the next one.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "05b-nonblocking/conn.h"
#include "reply.h"

struct exchange {
    struct reply reply; /* its offset moves on with what is sent of the file */
    size_t head_sent;
    off_t begin;   /* reply.offset at first */
    bool has_body; /* the request may be followed by bytes that nobody will read */
    bool found;    /* the file has been looked up: `reply` is a reply */
    bool waits;    /* for the disk */
    struct conn *conn;
    void *held;  /* what the operations hold beside the open file: NULL at first */
    size_t room; /* bytes of `rest` */
    char rest[]; /* room for what has come after the request: more is not read meanwhile */
};

enum sent {
    SENT_ALL,
    SENT_BLOCKED, /* send() gave EAGAIN */
    SENT_BUDGET,  /* as much as was allowed */
    SENT_WAITS,   /* the file has to be waited for */
    SENT_FAILED,  /* the client is gone, or the file is shorter than promised */
};

struct exchange_ops {
    /* Fills x->reply; reply_plan() if NULL. Returns false if that has to be waited for: it is
     * called again then, with the same request. */
    bool (*find)(struct exchange *x, const struct request *req, int docroot_fd);
    /* Sends what the socket takes, and stops soon after *budget bytes, which it counts down. */
    enum sent (*send)(int fd, struct exchange *x, long *budget);
    /* Closes the file, and gives back what is held; sent or not. */
    void (*end)(struct exchange *x);
};

/* The bytes that one may be sent before the others have their turn. */
#define TURN_BYTES (256L * 1024)

/* A turn is there to be short, and sendfile() is quick. As many as nginx: sendfile_max_chunk. */
#define SENDFILE_TURN (2L << 20)

/*
 * As conn_handle(). While exchange_waits() the answer means nothing: others will say when to go on,
 * and until then the connection must not be ended. With `short_count_is_all`, recv() that brought
 * less than there was room for is not asked again before the next event: for a loop that hears of
 * every byte, and of a client's end by itself (edge-triggered, with EPOLLRDHUP).
 */
enum want exchange_handle(struct conn *c, const struct exchange_ops *ops, long turn_bytes,
                          bool short_count_is_all);
bool exchange_waits(const struct conn *c);

/* As conn_timed_out(). */
enum want exchange_timed_out(struct conn *c);

/* Once the process is stopping nobody is waited for who has not asked, unless this is set. */
extern bool exchange_waits_for_requests;

/* As conn_end(). */
void exchange_end(struct conn *c, const struct exchange_ops *ops);

#endif
