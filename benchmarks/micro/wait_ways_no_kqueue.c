/* For a C library with which the kqueue of 10-kqueue cannot be built. */
#include "wait_ways.h"

const struct wait_way kqueue_wait_ways[] = {{NULL, NULL, NULL}};
