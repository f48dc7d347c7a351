/*
 * acknowledged.h: has the peer acknowledged all that was sent? Then it has arrived, and a reset can
 * no longer drop it (RFC 9112 section 9.6).
 */
#ifndef ACKNOWLEDGED_H
#define ACKNOWLEDGED_H

#include <stdbool.h>

/* Never waits. False also if the system does not tell, or fd is no socket. */
bool all_acknowledged(int fd);

#endif
