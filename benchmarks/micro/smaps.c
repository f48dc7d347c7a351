#include "smaps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "die.h"

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
