#include "15-slashdot/successor.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "end_with_parent.h"
#include "clock.h"
#include "15-slashdot/master.h" /* WORKERS_MOST_SOCKETS */
#include "die.h"
#include "log.h"

/* In the environment of the new program: descriptors, with commas between them. */
#define HANDED_SOCKETS "SLASHDOT_SOCKETS"
#define HANDED_STDERR  "SLASHDOT_STDERR" /* the pipe, and the descriptor that stderr was */

static const char ready_text[] = "ready";
static int ready_fd = -1; /* of a successor and its workers */

static bool env_set_numbers(const char *name, const int *numbers, int n)
{
    char text[12 * WORKERS_MOST_SOCKETS] = "", *at = text; /* ten digits, a comma */

    for (int i = 0; i < n; i++)
        at += sprintf(at, "%s%d", i > 0 ? "," : "", numbers[i]);
    return setenv(name, text, 1) == 0;
}

/* Returns how many numbers there were, and removes the variable. */
static int env_take_numbers(const char *name, int *numbers, int most)
{
    const char *at = getenv(name);
    int n = 0;

    while (at != NULL && *at != '\0' && n < most) {
        char *end;
        numbers[n++] = (int)strtol(at, &end, 10);
        at = *end == ',' ? end + 1 : NULL;
    }
    unsetenv(name);
    return n;
}

/* ---- in the old program */

/* In the child, which has inherited the listening sockets. dup() makes descriptors without
 * FD_CLOEXEC. */
static _Noreturn void successor_exec(char **argv, const int *fds, int count, int say_fd)
{
    int handed[] = {dup(say_fd), dup(STDERR_FILENO)};
    bool ready = dup2(say_fd, STDERR_FILENO) >= 0 && handed[0] >= 0 && handed[1] >= 0 &&
                 env_set_numbers(HANDED_STDERR, handed, 2) &&
                 env_set_numbers(HANDED_SOCKETS, fds, count);

    if (ready)
        execvp(argv[0], argv);
    warn_errno(ready ? "execvp %s" : "dup or setenv for %s", argv[0]);
    _exit(EXIT_FAILURE);
}

/* O_ASYNC: the reader of the pipe gets SIGIO, since the master waits for signals alone. O_DIRECT:
 * each write() is a packet of its own (pipe(2)). */
void successor_start(struct successor *s, char **argv, const int *fds, int count)
{
    pid_t parent = getpid();
    int ends[2];

    *s = (struct successor){.until = now_ms() + READY_MS};
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK | O_DIRECT) < 0) {
        warn_errno("restart: pipe2");
        return;
    }
    if (fcntl(ends[0], F_SETOWN, parent) < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK | O_ASYNC) < 0 ||
        (s->pid = fork()) < 0) {
        warn_errno("restart");
        s->pid = 0;
        close(ends[0]);
    } else if (s->pid == 0) {
        end_with_parent(parent);
        successor_exec(argv, fds, count, ends[1]);
    }
    close(ends[1]);
    s->fd = ends[0];
}

/* Returns whether it has said that it is ready. Any other packet is a line for stderr: kept. */
static bool successor_hear(struct successor *s)
{
    char packet[PIPE_BUF];
    ssize_t n;

    while ((n = read(s->fd, packet, sizeof packet)) > 0) {
        if ((size_t)n == sizeof ready_text && memcmp(packet, ready_text, sizeof ready_text) == 0)
            return true;
        size_t room = sizeof s->said - s->len, more = (size_t)n < room ? (size_t)n : room;
        memcpy(s->said + s->len, packet, more);
        s->len += more;
    }
    return false;
}

static void successor_forget(struct successor *s)
{
    close(s->fd);
    s->pid = 0;
}

/* Writes one line, with what the candidate has said. */
static void successor_report(struct successor *s, const char *how)
{
    char line[256 + sizeof s->said];

    while (s->len > 0 && s->said[s->len - 1] == '\n')
        s->len--;
    for (size_t i = 0; i < s->len; i++)
        s->said[i] = s->said[i] == '\n' ? ' ' : s->said[i];
    snprintf(line, sizeof line, "restart: the new program %s%s%.*s", how, s->len > 0 ? ": " : "",
             (int)s->len, s->said);
    log_line(line);
}

bool successor_is_ready(struct successor *s)
{
    if (!successor_hear(s))
        return false;
    if (s->len > 0)
        successor_report(s, "is ready, and said");
    successor_forget(s);
    return true;
}

void successor_failed(struct successor *s, int status)
{
    char how[128], what[64];

    if (status < 0)
        snprintf(what, sizeof what, "was not ready after %d s", READY_MS / 1000);
    else if (WIFSIGNALED(status))
        snprintf(what, sizeof what, "was ended by signal %d", WTERMSIG(status));
    else
        snprintf(what, sizeof what, "ended with status %d", WEXITSTATUS(status));
    snprintf(how, sizeof how, "%s, the old one goes on", what);
    successor_hear(s);
    successor_report(s, how);
    successor_forget(s);
}

/* ---- in the new program */

int successor_sockets(int *fds, int most)
{
    return env_take_numbers(HANDED_SOCKETS, fds, most);
}

bool successor_begin(void)
{
    int handed[2];

    if (env_take_numbers(HANDED_STDERR, handed, 2) < 2)
        return false;
    ready_fd = handed[0];
    if (dup2(handed[1], STDERR_FILENO) >= 0)
        close(handed[1]);
    log_open(); /* again: stderr is no longer the pipe */
    return true;
}

bool successor_ready(bool say)
{
    if (ready_fd < 0)
        return false;
    if (say)
        (void)!write(ready_fd, ready_text, sizeof ready_text);
    close(ready_fd);
    ready_fd = -1;
    return true;
}
