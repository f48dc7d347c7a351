/* Starting a TCP connection without waiting for it. */
#ifndef HAMMER_DIAL_H
#define HAMMER_DIAL_H

#include "address.h"
#include "tally.h"

/*
 * Begins to connect and returns the non-blocking descriptor, or -1 with errno set. The outcome
 * shows at the first send or in dial_result(). Takes the next address of `sources` if it has
 * any. `receive_buffer` > 0 sets SO_RCVBUF (the kernel raises it to its minimum).
 */
int dial(const struct endpoint *endpoint, struct source_list *sources, int receive_buffer);

/* The outcome of a connect in progress: 0, or the errno it failed with. */
int dial_result(int fd);

/* The kind of error a failed connect counts as. */
enum fetch_error dial_error(int error);

#endif
