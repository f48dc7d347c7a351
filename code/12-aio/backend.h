/*
 * backend.h: how the bytes of a file come from the disk to the socket without anybody else
 * waiting for them: the table of lighttpd 1.5, one file each. send_reply() (backend.c) is the
 * same for all.
 */
#ifndef BACKEND_H
#define BACKEND_H

#include <sys/types.h>

#include "05b-nonblocking/send_reply.h"

/* region: backend */
enum fetched {
    FETCHED, /* what send() sends next will not wait for the disk, as far as we know */
    FETCHING,
    FETCH_BLOCKED, /* of those who send by themselves: the socket is full */
    FETCH_FAILED   /* the file cannot be read, or is shorter than promised; or the client is gone */
};

struct backend {
    const char *name;
    void (*start)(
        int readers); /* threads, or whoever reads; ends the program if it fails; or NULL */
    /* Sees to it that the next bytes are in memory. NULL: nothing is done about that. */
    enum fetched (*fetch)(struct sending *s);
    /*
     * Sends at most `most` bytes of the body. Returns how many; 0 if the file has become too
     * short; -1 with errno.
     */
    ssize_t (*send)(int fd, struct sending *s, size_t most);
    void (*end)(struct sending *s); /* gives s->held back, which may be NULL; no job is under way */
};
/* endregion: backend */

extern const struct backend backend_writev, backend_sendfile, backend_posix, backend_threads,
    backend_nowait, backend_threads_sendfile, backend_linux, backend_readahead;

#define BACKEND_HELP                                                                               \
    "who waits for the disk, default threads: writev or sendfile (all do),\n"                      \
    "              posix, threads, nowait (what is cached at once, else threads),\n"               \
    "              threads-sendfile, linux, readahead"

/*
 * What serves from now on. A name that is none ends the program; NULL is the default. With
 * noatime, reading a file shall not be noted in its inode, where we may ask for that.
 */
void backend_choose(const char *name, int readers, bool noatime);

/* To be called with each file before it is read. */
void backend_opened(int fd);

#endif
