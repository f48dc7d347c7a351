/* PROC_PDEATHSIG_CTL: procctl(2). Compiled by `make cross`, never run. */
#include "03-prefork/end_with_parent.h"

#include <signal.h>
#include <sys/procctl.h>
#include <unistd.h>

#include "die.h"

void end_with_parent(pid_t parent)
{
    int signum = SIGTERM;

    if (procctl(P_PID, 0, PROC_PDEATHSIG_CTL, &signum) < 0)
        warn_errno("procctl PROC_PDEATHSIG_CTL");
    if (getppid() != parent) /* it was gone before we could say that we want to know */
        raise(SIGTERM);
}
