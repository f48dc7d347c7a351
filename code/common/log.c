#include "log.h"
#include "die.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_ulong own_count;
static atomic_ulong *lost = &own_count; /* lines that were lost and not yet reported */
static int log_fd = STDERR_FILENO;

/*
 * O_NONBLOCK belongs to the open file, which is shared with the process that gave us stderr: set
 * here, the shell's writes would not wait either. So a pipe or a terminal is opened once more, by
 * the name that Linux has for it. Elsewhere, or without the right to do so, poll() says before each
 * line whether there is room. What has O_NONBLOCK already is used as it is: 15-slashdot's pipe.
 */
static void open_once_more(void)
{
    struct stat st;
    int flags = O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

    if (fstat(STDERR_FILENO, &st) < 0 || !(S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) ||
        (fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK) != 0)
        return;
    int fd = open("/proc/self/fd/2", flags);
    if (fd >= 0)
        log_fd = fd;
}

void log_open(void)
{
    if (lost == &own_count) {
        void *page =
            mmap(NULL, sizeof *lost, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        lost = page != MAP_FAILED ? page : &own_count;
    }
    if (log_fd != STDERR_FILENO)
        close(log_fd);
    log_fd = STDERR_FILENO;
    open_once_more();
    write_line = log_line;
}

/* poll() reports POLLOUT for a pipe with room for a whole line, and always for a file. If poll()
 * fails the line is written all the same: it may be the last one, and say why. */
static bool log_put(const char *line, size_t len)
{
    struct pollfd p = {.fd = log_fd, .events = POLLOUT};
    int n = poll(&p, 1, 0);

    return (n < 0 || (p.revents & POLLOUT) != 0) && write(log_fd, line, len) == (ssize_t)len;
}

static bool put_count(unsigned long count)
{
    char line[LOG_LINE_MAX]; /* a program's name may have 255 bytes */
    int len = snprintf(line, sizeof line, "%s: %lu lines are missing here: stderr was not read\n",
                       program_name, count);

    return count == 0 || log_put(line, (size_t)len < sizeof line ? (size_t)len : sizeof line - 1);
}

void log_line(const char *text)
{
    char line[LOG_LINE_MAX];
    size_t len = (size_t)snprintf(line, sizeof line, "%s: %s\n", program_name, text);
    unsigned long count = atomic_exchange(lost, 0);

    if (len >= sizeof line) {
        len = sizeof line - 1;
        line[len - 1] = '\n';
    }
    if (!put_count(count))
        atomic_fetch_add(lost, count + 1);
    else if (!log_put(line, len))
        atomic_fetch_add(lost, 1);
}

void log_escape(char *to, size_t size, const char *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;

    for (size_t i = 0; i < len && n + 5 <= size; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= ' ' && c < 0x7f && c != '"' && c != '\\') {
            to[n++] = (char)c;
            continue;
        }
        memcpy(to + n, (char[]){'\\', 'x', digits[c >> 4], digits[c & 15]}, 4);
        n += 4;
    }
    to[n] = '\0';
}
