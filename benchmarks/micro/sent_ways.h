/* sent_ways.h: the ways of in-flight to send a whole file that not every system has. */
#ifndef SENT_WAYS_H
#define SENT_WAYS_H

#include <stddef.h>
#include <sys/types.h>

/* Each sends `size` bytes of the file, from its beginning. Returns how many, or -1 with errno. */
typedef ssize_t send_fn(int socket_fd, int file_fd, size_t size);

/* The way of that name, or NULL. */
send_fn *sent_way(const char *name);

#endif
