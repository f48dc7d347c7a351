/*
 * helper.c: the idea of lighttpd's stat accelerator (2006). A process that opens every file and
 * closes it again before the server opens it: then names and inodes are in the kernel's caches,
 * and the server's own open() does not wait. It was made for servers that one could not change:
 * all it takes is that the server asks somebody else first.
 *
 * A question on a line is the path with its length before it, the answer one byte. Each line has
 * a thread of the helper that waits at its other end; so a line has one question at a time, and
 * questions wait for a line.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "end_with_parent.h"
#include "12-aio/look_up.h"
#include "die.h"
#include "log.h"
#include "open_below.h"

#define LINES 20 /* as many as lighttpd's had threads */

struct question {
    uint16_t length;
    char path[REPLY_PATH_MAX];
};

static struct line {
    int fd, far_end;
    struct look_up *asked; /* NULL: the line is free */
} lines[LINES];

static pid_t helper;
static int epoll_fd = -1;
static int live; /* lines that work */
static int files_below;
static struct job *waiting, **waiting_end = &waiting;

/* ---- in the helper ---- */

/* Returns false at the end of the line. */
static bool receive_all(int fd, void *to, size_t len)
{
    for (size_t have = 0; have < len;) {
        ssize_t n = recv(fd, (char *)to + have, len - have, 0);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        have += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static void *answer_loop(void *arg)
{
    const struct line *line = arg;
    struct question q;

    while (receive_all(line->far_end, &q.length, sizeof q.length) && q.length < sizeof q.path &&
           receive_all(line->far_end, q.path, q.length)) {
        q.path[q.length] = '\0';
        int fd = open_below(files_below, q.path);
        if (fd >= 0)
            close(fd);
        if (send(line->far_end, "", 1, MSG_NOSIGNAL) != 1)
            break;
    }
    close(line->far_end); /* else the server would wait for an answer */
    return NULL;
}

/* Ends when the server closes the lines, and with the server. */
static _Noreturn void be_helper(pid_t parent)
{
    pthread_t threads[LINES];

    end_with_parent(parent);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for the server */
    for (int i = 0; i < LINES; i++) {
        close(lines[i].fd);
        errno = pthread_create(&threads[i], NULL, answer_loop, &lines[i]);
        if (errno != 0)
            die_errno("pthread_create");
    }
    for (int i = 0; i < LINES; i++)
        pthread_join(threads[i], NULL);
    _exit(EXIT_SUCCESS);
}

/* ---- in the server ---- */

static int no_delay(int fd)
{
    int on = 1;

    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* What socketpair() is for Unix sockets. Whoever else connects meanwhile is not our other end. */
static int tcp_pair(int ends[2])
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in ours, theirs;
    socklen_t len = sizeof here;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ends[1] = -1;
    if (listener < 0 || ends[0] < 0 || bind(listener, (struct sockaddr *)&here, len) < 0 ||
        listen(listener, 1) < 0 || getsockname(listener, (struct sockaddr *)&here, &len) < 0 ||
        connect(ends[0], (struct sockaddr *)&here, len) < 0 ||
        getsockname(ends[0], (struct sockaddr *)&ours, &len) < 0 ||
        (ends[1] = accept(listener, (struct sockaddr *)&theirs, &len)) < 0)
        return -1;
    close(listener);
    if (theirs.sin_port != ours.sin_port) {
        errno = ECONNABORTED;
        return -1;
    }
    return no_delay(ends[0]) < 0 ? -1 : no_delay(ends[1]);
}

static void lose(struct line *line)
{
    close(line->fd); /* which takes it out of the epoll set, too */
    line->fd = -1;
    if (--live == 0)
        log_line("the helper is gone: files are looked up by threads");
}

/* Puts a question on a free line. Returns false if there is none. */
static bool ask(struct look_up *l)
{
    struct question q;

    q.length = (uint16_t)strlen(l->path);
    memcpy(q.path, l->path, q.length);
    ssize_t len = (ssize_t)(sizeof q.length + q.length);
    for (int i = 0; i < LINES; i++) {
        if (lines[i].fd < 0 || lines[i].asked != NULL)
            continue;
        if (send(lines[i].fd, &q, (size_t)len, MSG_NOSIGNAL) != len) { /* a free line is empty */
            lose(&lines[i]);
            continue;
        }
        lines[i].asked = l;
        return true;
    }
    return false;
}

static void take_answer(struct line *line)
{
    char byte;
    ssize_t n = recv(line->fd, &byte, 1, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        lose(line);
    if (line->asked == NULL)
        return;
    if (n > 0) /* else a thread looks */
        line->asked->error = 0;
    job_collected(&line->asked->job);
    line->asked = NULL;
}

static void collect(void)
{
    struct epoll_event events[LINES];
    int n = epoll_wait(epoll_fd, events, LINES, 0);

    for (int i = 0; i < n; i++)
        take_answer(events[i].data.ptr);
    while (waiting != NULL && (ask((struct look_up *)waiting) || live == 0)) {
        struct job *job = waiting;
        if ((waiting = job->next) == NULL)
            waiting_end = &waiting;
        if (live == 0)
            job_collected(job);
    }
}

bool helper_begin(struct look_up *l)
{
    if (!ask(l)) {
        if (live == 0)
            return false;
        l->job.next = NULL;
        *waiting_end = &l->job;
        waiting_end = &l->job.next;
    }
    job_begins(&l->job);
    return true;
}

int helper_start(bool over_tcp, int docroot_fd)
{
    pid_t parent = getpid();

    files_below = docroot_fd;
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        die_errno("epoll_create1");
    for (int i = 0; i < LINES; i++) {
        int ends[2];
        if ((over_tcp ? tcp_pair(ends) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) <
            0)
            die_errno("a line to the helper");
        lines[i] = (struct line){ends[0], ends[1], NULL};
    }
    helper = fork();
    if (helper < 0)
        die_errno("fork");
    if (helper == 0)
        be_helper(parent);
    live = LINES;
    for (int i = 0; i < LINES; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &lines[i]};
        close(lines[i].far_end);
        int flags = fcntl(lines[i].fd, F_GETFL);
        if (flags < 0 || fcntl(lines[i].fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
            epoll_ctl(epoll_fd, EPOLL_CTL_ADD, lines[i].fd, &event) < 0)
            die_errno("a line to the helper");
    }
    jobs_collect_by(collect);
    return epoll_fd;
}

void helper_stop(void)
{
    for (int i = 0; i < LINES; i++)
        if (lines[i].fd >= 0)
            close(lines[i].fd);
    while (waitpid(helper, NULL, 0) < 0 && errno == EINTR)
        ;
}
