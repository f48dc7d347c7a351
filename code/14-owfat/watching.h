/* watching.h: tells the library what to watch a descriptor for. */
#ifndef WATCHING_H
#define WATCHING_H

#include <stdbool.h>

#include "want.h"

/* False where the kernel refused: there will be no event for it. */
bool want_read(int fd);
bool want_write(int fd);

/* For a client, which was watched for `before`. */
bool watch(int fd, enum want want, enum want before);

#endif
