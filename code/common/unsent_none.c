/* The BSDs have no such limit; macOS has one that was not tried. */
#include "unsent.h"

int unsent_limit;

void unsent_limited(int listen_fd)
{
    (void)listen_fd;
}

void unsent_unlimited(int fd)
{
    (void)fd;
}
