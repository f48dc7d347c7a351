/*
 * transfer.h: what a reply that is being sent holds of its file, in `held` of struct exchange.
 * Until the file is found `held` may be a job of look_up.h. find_reply.c calls transfer_begin();
 * send_reply.c allocates, uses and frees a transfer.
 */
#ifndef TRANSFER_H
#define TRANSFER_H

#include <sys/types.h>

#include "05b-nonblocking/conn.h"
#include "12-aio/job.h"
#include "15-slashdot/file_cache.h"

struct transfer {
    struct job job; /* first: a thread reads a part of the file into the kernel's memory */
    struct file *file;
    off_t from, to;         /* that part */
    long long trusted_till; /* until then it is taken to be in memory, by now_ms() */
    int error;              /* errno of that reading; 0: none */
};

/* The operations of struct conn_ops. */
bool transfer_find(struct exchange *x, const struct request *req, int docroot_fd);
enum sent transfer_send(int fd, struct exchange *x, long *budget);
void transfer_end(struct exchange *x);

/* Starts the threads that wait for the disk: so many for bytes, and some for names, so that a
 * request for a name does not wait behind those for bytes. */
void transfer_start(int readers, int docroot_fd);

/* The threads for bytes. */
extern struct pool *disk_threads;

/* Makes x hold f, and takes over the caller's use of it. False without memory: then it does not. */
bool transfer_begin(struct exchange *x, struct file *f);

#endif
