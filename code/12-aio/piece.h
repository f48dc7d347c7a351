/*
 * piece.h: a piece of a file that is being read into memory, or has been. The backends that read
 * differ in who does it: a thread, the C library, the kernel.
 */
#ifndef PIECE_H
#define PIECE_H

#include <aio.h>
#include <sys/types.h>

#include "05b-nonblocking/send_reply.h"
#include "12-aio/backend.h"
#include "12-aio/job.h"

#define PIECE_SIZE  (256 * 1024) /* at most; a turn's budget */
#define PIECE_KEPT  (64 * 1024)  /* for a client whose socket is full */
#define PIECE_ALIGN 4096         /* of buffer, offset and length: what O_DIRECT may ask for */

struct piece {
    struct job job; /* first: a job is taken for its piece */
    int fd;
    off_t wanted; /* what it was read for: it may bring less than it should, but not nothing */
    off_t from;   /* the multiple of PIECE_ALIGN before that */
    size_t want;  /* bytes; a multiple of PIECE_ALIGN, too */
    ssize_t have; /* what the reading returned: bytes, or -1 */
    char *buffer;
    size_t room;          /* in it: PIECE_SIZE or PIECE_KEPT */
    struct aiocb control; /* for backend_posix.c alone */
};

/*
 * What a backend's fetch() is: FETCHED if the next bytes are in memory; else begin(piece) gets
 * the reading under way, which sets have, and says that the job is over.
 */
enum fetched piece_fetch(struct sending *s, void (*begin)(struct piece *p));
ssize_t piece_send(int fd, struct sending *s, size_t most);
void piece_end(struct sending *s);

/* Reads it, waiting for the disk: a job's run(). */
void piece_read(struct job *job);

#endif
