#include "end_with_parent.h"

#include <signal.h>
#include <unistd.h>

#include "die.h"

#if defined(__linux__)
#include <sys/prctl.h>

static void ask(void)
{
    if (prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0UL, 0UL, 0UL) < 0)
        warn_errno("prctl PR_SET_PDEATHSIG");
}
#elif defined(__FreeBSD__) /* compiled by `make cross`, never run */
#include <sys/procctl.h>

static void ask(void)
{
    int signum = SIGTERM;

    if (procctl(P_PID, 0, PROC_PDEATHSIG_CTL, &signum) < 0)
        warn_errno("procctl PROC_PDEATHSIG_CTL");
}
#else /* the children of a server that was killed go on until each is stopped by hand */
static void ask(void)
{
}
#endif

void end_with_parent(pid_t parent)
{
    ask();
    if (getppid() != parent) /* it ended before the call above: no signal will come */
        raise(SIGTERM);
}
