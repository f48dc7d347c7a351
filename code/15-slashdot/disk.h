/* disk.h: the threads that wait for the disk, in find_reply.c for a name and in send_reply.c for
 * the bytes. */
#ifndef DISK_H
#define DISK_H

#include "12-aio/job.h"

extern struct pool *disk_threads;

#endif
