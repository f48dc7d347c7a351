/*
 * backend.h: how the bytes of a file come from the disk to the socket while the loop goes on. A
 * backend (-d) reads a piece of the file into memory and says when it is there; then the loop sends
 * it. Backends differ in what waits for the disk: our threads (piece.c), threads of the C library
 * (backend_posix.c), the kernel (backend_linux.c). Four other ways to send a file, which are only
 * measured, are in appendix/.
 */
#ifndef BACKEND_H
#define BACKEND_H

#include <aio.h>
#include <sys/types.h>

#include "05b-nonblocking/conn.h"
#include "12-aio/job.h"

#define PIECE_SIZE  (256 * 1024) /* bytes of a piece at most; as TURN_BYTES of conn.c */
#define PIECE_KEPT  (56 * 1024)  /* kept if the socket is full: with the exchange below 64 KiB */
#define PIECE_ALIGN 4096         /* of buffer, offset and length, as O_DIRECT asks for */

struct piece {
    struct job job; /* first: a pointer to it is a pointer to the piece */
    int fd;
    off_t wanted; /* exchange_offset() when the reading began: the first byte that is needed */
    off_t from;   /* the multiple of PIECE_ALIGN at or before it, where the reading begins */
    size_t want;  /* bytes to read, a multiple of PIECE_ALIGN */
    ssize_t have; /* bytes read, or minus an errno; may be less than `want` */
    bool direct;  /* fd has O_DIRECT: reads go past the page cache */
    char *buffer;
    size_t room;          /* size of the buffer: PIECE_SIZE or PIECE_KEPT */
    struct aiocb control; /* for backend_posix.c alone */
};

struct backend {
    const char *name;
    void (*start)(int readers); /* at most so many at a time; ends the program if it fails */
    /* Begins to read p->want bytes at p->from, and sets the job UNDER_WAY; when it is OVER, p->have
     * is the result. Or it is done, or fails, at once: sets p->have and leaves the job IDLE. */
    void (*begin_read)(struct piece *p);
};

extern const struct backend backend_threads, backend_posix, backend_linux;

enum fetched {
    FETCHED,     /* send() will not wait for the disk (with a source of appendix/ it still can) */
    FETCHING,    /* a job is under way */
    FETCH_FAILED /* errno says why. EIO: also if the file has become shorter; EAGAIN: the disk did
                    not answer, or jobs_refused(); ENOMEM */
};

/* Where the body of a reply comes from: pieces, or what appendix/ has in their place. */
struct body_source {
    enum fetched (*fetch)(struct exchange *x); /* the next bytes, so that send() need not wait */
    /* Sends at most `most` bytes. Returns how many; 0 if the file has become too short; -1 with
     * errno. */
    ssize_t (*send)(int fd, struct exchange *x, size_t most);
    void (*end)(struct exchange *x);     /* frees x->held, if it is not NULL; no job is under way */
    void (*blocked)(struct exchange *x); /* the socket is full: keep little; NULL: nothing to do */
};

#define BACKEND_HELP                                                                               \
    "what waits for bytes that are not in memory, default threads: threads,\n"                     \
    "              posix, linux; also writev, sendfile, threads-sendfile, readahead"

/* An unknown name ends the program; NULL is the default. */
void backend_choose(const char *name, int readers);

/* send() and end() of struct conn_ops. */
enum sent backend_send(int fd, struct exchange *x, long *budget);
void backend_end(struct exchange *x);

/* Makes the first buffer, or ends the program. Before there are threads: else their stacks could
 * take the last of the memory, and no client would get the buffer that its reply needs. */
void piece_init(void);

/* piece_start() starts the backend that reads; the others are operations of a body_source. */
void piece_start(const struct backend *backend, int readers);
enum fetched piece_fetch(struct exchange *x);
ssize_t piece_send(int fd, struct exchange *x, size_t most);
void piece_end(struct exchange *x);
void piece_blocked(struct exchange *x);

/* Reads the piece and waits for the disk: the run() of a job. */
void piece_read(struct job *job);

#endif
