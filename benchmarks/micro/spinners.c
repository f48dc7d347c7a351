#include "spinners.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

#define SPINS 1000000 /* between two looks for the parent: about a millisecond */

static _Noreturn void spin(pid_t parent, int nicer)
{
    errno = 0;
    if (nice(nicer) == -1 && errno != 0)
        _exit(EXIT_FAILURE);
    /* A new parent means that ours is dead. A pipe, as children.c has it, would have to be read. */
    while (getppid() == parent)
        for (volatile int i = 0; i < SPINS; i++)
            ;
    _exit(EXIT_FAILURE);
}

bool spinners_start(struct spinners *spinners, size_t count, int nicer)
{
    pid_t parent = getpid();
    spinners->pid = samples_new(count + 1, sizeof *spinners->pid);
    for (spinners->count = 0; spinners->count < count; spinners->count++) {
        pid_t pid = fork();
        if (pid == 0)
            spin(parent, nicer);
        if (pid == -1)
            return false;
        spinners->pid[spinners->count] = pid;
    }
    return true;
}

void spinners_end(struct spinners *spinners)
{
    for (size_t i = 0; i < spinners->count; i++)
        if (kill(spinners->pid[i], SIGKILL) == -1)
            die_errno("kill");
    for (size_t i = 0; i < spinners->count; i++) {
        int status;
        while (waitpid(spinners->pid[i], &status, 0) == -1)
            if (errno != EINTR)
                die_errno("waitpid");
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
            die(EXIT_FAILURE, "a spinner ended by itself");
    }
    free(spinners->pid);
}
