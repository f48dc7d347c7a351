/* For systems that have neither Linux's signals with descriptors nor epoll. */
#include "wait_ways.h"

const struct wait_way system_wait_ways[] = {{NULL, NULL, NULL}};
