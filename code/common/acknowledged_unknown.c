/* OpenBSD and macOS do not tell: one waits until the client closes. */
#include "acknowledged.h"

bool all_acknowledged(int fd)
{
    (void)fd;
    return false;
}
