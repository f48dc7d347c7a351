/*
 * cork.h: tells TCP to keep back what fills no packet; or, with `on` false, to send it now.
 * Returns 0, or -1 with errno. One file for each name of the option.
 */
#ifndef CORK_H
#define CORK_H

#include <stdbool.h>

int cork(int fd, bool on);

#endif
