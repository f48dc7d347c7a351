/* The BSDs have no such limit; macOS has one that was not tried. */
#include "unsent.h"

int unsent_limit;
bool unsent_lifts;

void unsent_limited(int listen_fd)
{
    (void)listen_fd;
}

void unsent_unlimited(int fd)
{
    (void)fd;
}
