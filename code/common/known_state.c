#include "known_state.h"
#include "die.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#define STACK_LEAST (256 * 1024) /* bytes: twice what a request takes */

/* accept() returns the lowest free number: if 2 is closed a client's connection gets it, and the
 * next line of the log goes into its reply. The wrong direction (0 to write, 1 and 2 to read) is on
 * purpose: their use fails with EBADF, as that of closed ones. */
static void open_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            die_errno("open /dev/null");
}

/* SIGALRM is ignored before it is unblocked: one may be pending. SIGXFSZ would end the process
 * where a file that it writes to has reached the limit; ignored, write() fails. SIGCHLD must not be
 * ignored: waitpid() would not find the children. SIGHUP stays as it is, for nohup(1). */
static void set_signals(const sigset_t *held)
{
    const struct itimerval never = {0};
    sigset_t none;

    sigemptyset(&none);
    alarm(0);
    setitimer(ITIMER_VIRTUAL, &never, NULL);
    setitimer(ITIMER_PROF, &never, NULL);
    if (signal(SIGALRM, SIG_IGN) == SIG_ERR || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
        signal(SIGXFSZ, SIG_IGN) == SIG_ERR || signal(SIGCHLD, SIG_DFL) == SIG_ERR)
        die_errno("signal");
    if (sigprocmask(SIG_SETMASK, held != NULL ? held : &none, NULL) < 0)
        die_errno("sigprocmask");
}

/* The kernel looks at this limit each time a stack grows, so it may be raised now. */
static void raise_stack(void)
{
    struct rlimit stack;

    if (getrlimit(RLIMIT_STACK, &stack) < 0)
        die_errno("getrlimit");
    if (stack.rlim_cur >= STACK_LEAST)
        return;
    stack.rlim_cur = STACK_LEAST;
    if (stack.rlim_max < STACK_LEAST || setrlimit(RLIMIT_STACK, &stack) < 0)
        die(EXIT_FAILURE, "the limit of the stack is below %d KiB", STACK_LEAST / 1024);
}

void known_state(const char *argv0, const sigset_t *held)
{
    static bool known;

    if (known)
        return;
    known = true;
    set_program_name(argv0);
    open_standard_descriptors();
    set_signals(held);
    raise_stack();
}
