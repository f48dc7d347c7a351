/* blocks.h: a file of blocks that can be read one by one, from the disk or from memory. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stddef.h>
#include <sys/types.h>

#define BLOCK_BYTES   4096
#define BLOCK_SPACING 65536 /* one read must not bring the next block along */

/* Where block number i begins. */
off_t block_offset(size_t i);

/*
 * Makes the new file at path, with count blocks that are on the disk when it returns. If a call
 * fails it dies, and leaves no file.
 */
void blocks_make(const char *path, size_t count);

/* Opens it for reading, with more flags; no read is to be made ahead. Dies if it cannot. */
int blocks_open(const char *path, int flags);

/* Throws its pages out of memory. Does nothing to files that have no other place, as on tmpfs. */
void blocks_forget(int fd);

/* Reads block i once with pread(); dies unless it comes as a whole. */
void block_read(int fd, void *buffer, size_t i);

#endif
