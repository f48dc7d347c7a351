/*
 * transfer.h: what a reply on its way holds of its file, in the `held` of struct sending, from
 * find_reply.c to send_reply.c.
 */
#ifndef TRANSFER_H
#define TRANSFER_H

#include <sys/types.h>

#include "05b-nonblocking/send_reply.h"
#include "12-aio/job.h"
#include "15-slashdot/file_cache.h"

struct transfer {
    struct job job; /* first: a thread reads a part of the file into the kernel's memory */
    struct file *file;
    off_t from, to; /* that part */
    int error;      /* errno of that reading, 0 */
};

/* Makes s hold it, and takes the caller's use of f over. Returns false without memory. */
bool transfer_begin(struct sending *s, struct file *f);

#endif
