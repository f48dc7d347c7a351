/*
 * backend.h: how the bytes of a file come from the disk to the socket without anybody else
 * waiting for them: the table of lighttpd 1.5. backend_send() is the same for all; writev and
 * sendfile, with which all wait, are in backend.c, threads in piece.c, posix and linux in files of
 * their own, and what others have tried since is in appendix/.
 */
#ifndef BACKEND_H
#define BACKEND_H

#include <aio.h>
#include <sys/types.h>

#include "05b-nonblocking/conn.h"
#include "12-aio/job.h"

enum fetched {
    FETCHED, /* what send() sends next will not wait for the disk, as far as we know */
    FETCHING,
    FETCH_BLOCKED, /* of those who send by themselves: the socket is full */
    FETCH_FAILED   /* errno says why: the file cannot be read, or is shorter than promised (EIO), or
                      the disk does not answer (EAGAIN) */
};

struct backend {
    const char *name;
    void (*start)(
        int readers); /* threads, or whoever reads; ends the program if it fails; or NULL */
    /* Sees to it that the next bytes are in memory. NULL: nothing is done about that. */
    enum fetched (*fetch)(struct exchange *x);
    /*
     * Sends at most `most` bytes of the body. Returns how many; 0 if the file has become too
     * short; -1 with errno.
     */
    ssize_t (*send)(int fd, struct exchange *x, size_t most);
    void (*end)(
        struct exchange *x); /* gives x->held back, which may be NULL; no job is under way */
};

extern const struct backend backend_posix, backend_threads, backend_linux;
extern const struct backend backend_threads_sendfile, backend_readahead;

#define BACKEND_HELP                                                                               \
    "who waits for what is not in memory, default threads: writev or sendfile\n"                   \
    "              (all do), posix, threads, threads-sendfile, linux, readahead"

/*
 * What serves from now on. A name that is none ends the program; NULL is the default. With
 * noatime, reading a file shall not be noted in its inode, where we may ask for that.
 */
void backend_choose(const char *name, int readers, bool noatime);

/* To be called with each file before it is read. */
void backend_opened(int fd);

/* The send() and end() of struct conn_ops. */
enum sent backend_send(int fd, struct exchange *x, long *budget);
void backend_end(struct exchange *x);

/*
 * For backends that read a piece of a file into memory, and differ in who does it: a thread, the C
 * library, the kernel.
 */
#define PIECE_SIZE  (256 * 1024) /* at most; a turn's budget */
#define PIECE_KEPT  (56 * 1024)  /* for a client whose socket is full: with the rest below 64 KiB */
#define PIECE_ALIGN 4096         /* of buffer, offset and length: what O_DIRECT may ask for */

struct piece {
    struct job job; /* first: a job is taken for its piece */
    int fd;
    off_t wanted; /* what it was read for: it may bring less than it should, but not nothing */
    off_t from;   /* the multiple of PIECE_ALIGN before that */
    size_t want;  /* bytes; a multiple of PIECE_ALIGN, too */
    ssize_t have; /* what the reading brought: bytes, or minus an errno */
    bool direct;  /* read past the page cache from now on (O_DIRECT) */
    char *buffer;
    size_t room;          /* in it: PIECE_SIZE or PIECE_KEPT */
    struct aiocb control; /* for backend_posix.c alone */
};

/*
 * What a backend's fetch() is: FETCHED if the next bytes are in memory, its own or the page cache;
 * else begin(piece) gets the reading under way, which sets have, and says that the job is over.
 */
enum fetched piece_fetch(struct exchange *x, void (*begin)(struct piece *p));

/* After job_is_lost(): the file is the job's from now on. FETCH_FAILED. */
enum fetched backend_give_up(struct exchange *x, void (*drop)(struct job *));
ssize_t piece_send(int fd, struct exchange *x, size_t most);
void piece_end(struct exchange *x);

/* Reads it, waiting for the disk: a job's run(). */
void piece_read(struct job *job);

#endif
