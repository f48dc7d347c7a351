/*
 * look_up.h: finding a file takes a walk over directories and an inode, and each may have to come
 * from the disk. A file whose names the kernel has in memory is found at once (cached.h); for
 * another one a thread waits.
 */
#ifndef LOOK_UP_H
#define LOOK_UP_H

#include <sys/stat.h>
#include <time.h>

#include "05b-nonblocking/conn.h"
#include "12-aio/job.h"
#include "reply.h"

struct found {
    int fd;    /* the open file, the caller's; -1: none */
    int error; /* errno; 0: none */
    struct stat st;
    long long asked; /* by now_ms(), before it was opened: a slow disk answers late */
    time_t seen;     /* when `st` was taken, or just before */
    char *body;      /* for 15-slashdot: all its bytes (malloc), or NULL */
};

#define LOOK_UP_THREADS 4

/* Starts so many threads. 0: the loop itself waits, in look_up_reply(). */
void look_up_start(int threads, int docroot_fd);

/* Opens the file if that needs no disk, or sets found->error. False (EAGAIN): use a thread. */
bool look_up_now(struct found *found, int docroot_fd, const char *path);

/* Has a thread open it and, if that succeeds, call then() there; `then` may be NULL. x->held is the
 * job. Returns false if it cannot begin: no memory, or jobs_refused(). */
bool look_up_begin(struct exchange *x, int docroot_fd, const char *path,
                   void (*then)(struct found *));

/* Takes the result of the job x->held and frees it; x->held is then NULL. False: it is still under
 * way. Where the disk does not answer the job is given up, and found->error is EAGAIN. */
bool look_up_take(struct exchange *x, struct found *found);

/* The find() of struct conn_ops. */
bool look_up_reply(struct exchange *x, const struct request *req, int docroot_fd);

#endif
