/* For systems other than Linux, and C libraries that lack some of it. */
#include <errno.h>

#include "die.h"
#include "waits.h"

const struct way *linux_way_named(const char *name)
{
    die(EXIT_UNSUPPORTED, "%s: Linux, with glibc or musl, is needed to wait so", name);
}

int set_timer_slack(unsigned long ns)
{
    (void)ns;
    errno = ENOSYS;
    return -1;
}
