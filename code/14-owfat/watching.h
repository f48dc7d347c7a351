/* watching.h: what a descriptor is wanted for, said to a library that keeps more in mind than it
 * tells. */
#ifndef WATCHING_H
#define WATCHING_H

#include <stdbool.h>

#include "want.h"

/* False where the kernel refused: it will never be heard of. */
bool want_read(int fd);
bool want_write(int fd);

/* A client's, which wanted `before`. */
bool watch(int fd, enum want want, enum want before);

#endif
