#include "fork_once.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

void fork_once(struct fork_sample *sample)
{
    int status;
    pid_t ended;
    uint64_t start = now_ns();
    pid_t pid = fork();
    if (pid == 0)
        _exit(EXIT_SUCCESS);
    sample->fork_ns = now_ns() - start;
    if (pid == -1) {
        sample->error = errno;
        return;
    }
    do {
        ended = waitpid(pid, &status, 0);
    } while (ended == -1 && errno == EINTR);
    sample->total_ns = now_ns() - start;
    if (ended == -1)
        die_errno("waitpid");
    if (status != 0)
        die(EXIT_FAILURE, "a child failed");
}

void fork_print(const struct fork_sample *samples, size_t count, const char *x_name)
{
    printf("%s\tfork_ns\ttotal_ns\terror\n", x_name);
    for (size_t i = 0; i < count; i++)
        printf("%lu\t%llu\t%llu\t%s\n", (unsigned long)samples[i].x,
               (unsigned long long)samples[i].fork_ns, (unsigned long long)samples[i].total_ns,
               error_name(samples[i].error));
    samples_finish();
}
