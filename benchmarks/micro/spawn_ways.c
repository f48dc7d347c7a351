#include "spawn_ways.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __dietlibc__
#include "die.h"
#else
#include <spawn.h>
#endif

/* The child of vfork() may be on our stack, in our memory: it calls nothing but these two. */
void spawn_child(const char *program)
{
    char *arguments[] = {(char *)program, NULL};
    char *environment[] = {NULL};
    if (program == NULL)
        _exit(EXIT_SUCCESS);
    execve(program, arguments, environment);
    _exit(CANNOT_EXECUTE);
}

pid_t spawn_by_fork(const char *program)
{
    pid_t pid = fork();
    if (pid == 0)
        spawn_child(program);
    return pid;
}

pid_t spawn_by_vfork(const char *program)
{
    pid_t pid = vfork();
    if (pid == 0)
        spawn_child(program);
    return pid;
}

pid_t spawn_by_posix_spawn(const char *program)
{
#ifdef __dietlibc__
    die(EXIT_UNSUPPORTED, "%s: this C library has no posix_spawn()", program);
#else
    char *arguments[] = {(char *)program, NULL};
    char *environment[] = {NULL};
    pid_t pid;
    errno = posix_spawn(&pid, program, NULL, NULL, arguments, environment);
    return errno == 0 ? pid : -1;
#endif
}
