/* facts.h: FD_SET() as the C library makes it when it is told to check, and when it is not. */
#ifndef FACTS_H
#define FACTS_H

#include <sys/select.h>

void fd_set_checked(int fd, fd_set *set);
void fd_set_plain(int fd, fd_set *set);

#endif
