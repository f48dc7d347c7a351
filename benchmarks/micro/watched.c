#include "watched.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

static uint64_t minor_faults(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == -1)
        die_errno("getrusage");
    return (uint64_t)usage.ru_minflt;
}

void watch(void (*work)(void *), void *argument, struct cost *cost)
{
    /* Twice, so that their own first faults, on the stack and in the library, are not work's. */
    uint64_t faults = minor_faults();
    uint64_t start = now_ns();
    int64_t waited = cost->ask_waited ? waited_ns() : -1;
    faults = minor_faults();
    start = now_ns();
    work(argument);
    uint64_t end = now_ns();
    cost->faults = minor_faults() - faults;
    cost->ns = end - start;
    int64_t waited_then = waited == -1 ? -1 : waited_ns();
    cost->waited_ns = waited_then == -1 ? -1 : waited_then - waited;
}

void *shared_new(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        die_errno("mmap of %lu bytes", (unsigned long)bytes);
    memset(memory, 0, bytes);
    return memory;
}

pid_t watched_start(const struct children *children, void (*work)(void *), void *argument,
                    struct cost *cost)
{
    pid_t pid = fork();
    if (pid == -1)
        die_errno("fork");
    if (pid == 0) {
        if (work != NULL)
            watch(work, argument, cost);
        child_live(children);
    }
    children_await_one(children);
    return pid;
}

void watched_end(pid_t pid)
{
    int status;
    pid_t ended;
    if (kill(pid, SIGTERM) == -1)
        die_errno("kill");
    do {
        ended = waitpid(pid, &status, 0);
    } while (ended == -1 && errno == EINTR);
    if (ended == -1)
        die_errno("waitpid");
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM)
        die(EXIT_FAILURE, "a child ended by itself");
}

static void read_all(int fd, char *text, size_t size, const char *path)
{
    size_t length = 0;
    ssize_t n;
    do {
        n = read(fd, text + length, size - 1 - length);
        if (n > 0)
            length += (size_t)n;
    } while (n > 0 || (n == -1 && errno == EINTR));
    if (n == -1)
        die_errno("read %s", path);
    text[length] = '\0';
}

size_t smaps_kib(pid_t pid, const char *field)
{
    char path[64] = "/proc/self/smaps_rollup";
    char text[4096]; /* the file has some 25 lines of 30 bytes */
    char start[64];
    if (pid != 0)
        snprintf(path, sizeof path, "/proc/%ld/smaps_rollup", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1 && access("/proc/self/smaps_rollup", R_OK) == -1)
        die(EXIT_UNSUPPORTED, "no /proc/PID/smaps_rollup here: it needs Linux 4.14");
    if (fd == -1)
        die_errno("open %s", path);
    read_all(fd, text, sizeof text, path);
    if (close(fd) == -1)
        die_errno("close %s", path);

    snprintf(start, sizeof start, "\n%s:", field);
    char *line = strstr(text, start);
    if (line == NULL)
        die(EXIT_UNSUPPORTED, "%s has no line %s", path, field);
    return strtoul(line + strlen(start), NULL, 10);
}
