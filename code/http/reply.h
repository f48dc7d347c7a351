/*
 * reply.h: request in, plan of the reply out. What every server here answers, so that they differ
 * only in how they serve. Nothing is sent from here. Status codes and fields: RFC 9110; 206 and
 * 416: its section 14.
 */
#ifndef REPLY_H
#define REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "http_parse.h"

/* Files of 2 GiB and more, also where a long has 32 bits; the parser of ranges counts on it. */
_Static_assert(sizeof(off_t) >= 8, "compile with -D_FILE_OFFSET_BITS=64");

/* Bytes that TCP sends without an acknowledgement: ten packets (RFC 6928), of 1428 bytes if each
 * has an IPv6 header and a time stamp; less the last lines of the head, and the text of an error.
 * If no packet is lost, a reset cannot overtake a reply that has left as a whole. */
#define REPLY_SHORT    (10 * 1428 - 80)
#define REPLY_HEAD_MAX 1024
#define REPLY_PATH_MAX 4096

/*
 * Send head[0..head_len), then the bytes offset..end of fd. fd is -1 if no file is sent: an error,
 * HEAD, 304; the text of an error is part of head. The holder of the reply closes fd.
 */
struct reply {
    int status;
    bool keep_alive; /* false: end the connection after this reply ... */
    bool may_close;  /* ... at once, no lingering: the only reply, short, and the client is done */
    int fd;
    off_t offset, end;
    size_t head_len;
    char head[REPLY_HEAD_MAX];
};

/* From now on reply_plan() keeps a descriptor in reserve for a file, or gives it up (`keep` false).
 * Returns false, with errno, if none could be had. For servers of one thread. */
bool reply_keep_spare(bool keep, int docroot_fd);

/* Returns what open_by() does; if that lacks a descriptor the one in reserve is given up for it. */
int reply_open(int docroot_fd, const char *path, int (*open_by)(int docroot_fd, const char *path));

/* For the last send() of a reply with may_close: the packet waits for the FIN, which shutdown()
 * adds. The BSDs have no such flag; there the FIN is a packet of its own. */
#ifdef MSG_MORE
#define FIN_FOLLOWS MSG_MORE
#else
#define FIN_FOLLOWS 0
#endif

/* From request to reply: path, open, stat, head. Errors become replies. May wait for the disk. */
void reply_plan(struct reply *r, const struct request *req, int docroot_fd);

/*
 * Its steps, for servers that open and stat by other means:
 * reply_path   0, and in path the path below the docroot, without empty segments and "."; or the
 *              status that refuses the request
 * reply_file   the reply for an open file; takes fd over: r->fd from now on, or closed
 * reply_found  the same, but the caller keeps fd, and closes it whether or not the reply names it
 * reply_errno  the reply for an open or stat that failed with `error`
 * reply_error  the reply for a status; req may be what http_parse() refused, and is NULL when
 *              nothing was read
 */
int reply_path(const struct request *req, char path[REPLY_PATH_MAX]);
void reply_file(struct reply *r, const struct request *req, int fd, const struct stat *st,
                const char *path);
void reply_found(struct reply *r, const struct request *req, int fd, const struct stat *st,
                 const char *path);
void reply_errno(struct reply *r, const struct request *req, int error);
void reply_error(struct reply *r, const struct request *req, int status);

/*
 * Appends the last lines of a head, which are about the connection and not about the file: for a
 * server that keeps the lines before (15-slashdot). They depend on r->keep_alive and, in HTTP/1.0,
 * on the request. Sets r->may_close, so r->offset and r->end must be set before.
 */
void reply_connection(struct reply *r, const struct request *req);

/*
 * For servers that send by copying: puts the next bytes of a reply, of which `sent` are sent, into
 * `to`, of `size` bytes, at least REPLY_HEAD_MAX; the head and the first of the body together, so
 * that they share a packet. May wait for the disk. Returns how many; 0: all are sent; -1: the file
 * cannot be read, or is shorter than promised: close the connection, only that tells the client.
 */
ssize_t reply_next(const struct reply *r, off_t sent, char *to, size_t size);

/* The line of -v on stderr: "GET /index.html HTTP/1.1" 200 1234 */
void reply_log(const struct reply *r, const struct request *req);

#endif
