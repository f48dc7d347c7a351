/*
 * look_up.h: to find a file takes a walk over directories and an inode, and each may have to come
 * from the disk. What the kernel has in its memory is found at once (cached.h); for the rest
 * another thread waits, or another process.
 */
#ifndef LOOK_UP_H
#define LOOK_UP_H

#include <sys/stat.h>

#include "05b-nonblocking/conn.h"
#include "12-aio/job.h"
#include "reply.h"

struct look_up {
    struct job job; /* first */
    int docroot_fd;
    int fd;               /* of the open file; -1: see error */
    int error;            /* errno; 0: it was only seen to that to look again will not take long */
#define LOOK_UP_NONE (-1) /* ... there is no answer */
    struct stat st;
    char path[];
};

#define LOOK_UP_HELP                                                                               \
    "who looks up files not in memory, default 4: so many threads (0: all wait),\n"                \
    "              or unix or tcp: another process, asked over sockets"

/*
 * `who`: a number of threads, 0: the loop itself; "unix" or "tcp": a helper process over such
 * sockets. NULL is the default. Ends the program if there is no such thing. Before there are
 * threads.
 */
void look_up_start(const char *who, int docroot_fd);

/* What the loop has to watch beside jobs_fd(), for jobs_next_over(); -1: nothing. */
int look_up_fd(void);

/* Ends the helper, if there is one. */
void look_up_stop(void);

/* The find() of struct conn_ops. */
bool look_up_reply(struct exchange *x, const struct request *req, int docroot_fd);

/* The helper (appendix/helper.c): begins to look; returns false if it is gone. */
int helper_start(bool over_tcp, int docroot_fd);
bool helper_begin(struct look_up *l);
void helper_stop(void);

#endif
