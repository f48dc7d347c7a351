/*
 * acknowledged.h: has the peer acknowledged all that was sent to it? Then it has arrived, and
 * nothing that happens to the connection can take it back (RFC 9112 section 9.6).
 */
#ifndef ACKNOWLEDGED_H
#define ACKNOWLEDGED_H

#include <stdbool.h>

/* False also where the system does not tell, or fd is no TCP socket. */
bool all_acknowledged(int fd);

#endif
