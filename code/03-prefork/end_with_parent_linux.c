/* PR_SET_PDEATHSIG: prctl(2). */
#include "03-prefork/end_with_parent.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "die.h"

void end_with_parent(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0UL, 0UL, 0UL) < 0)
        warn_errno("prctl PR_SET_PDEATHSIG");
    if (getppid() != parent) /* it was gone before we could say that we want to know */
        raise(SIGTERM);
}
