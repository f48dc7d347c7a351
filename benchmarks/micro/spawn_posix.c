#include <errno.h>
#include <spawn.h>
#include <stddef.h>

#include "spawn_ways.h"

pid_t spawn_by_posix_spawn(const char *program)
{
    char *arguments[] = {(char *)program, NULL};
    char *environment[] = {NULL};
    pid_t pid;
    errno = posix_spawn(&pid, program, NULL, NULL, arguments, environment);
    return errno == 0 ? pid : -1;
}
