/*
 * helper.c: the idea of lighttpd's stat accelerator (2006). A process that opens each file and
 * closes it again before the server opens it: then names and inodes are in the kernel's caches,
 * and the server's own open() does not wait. It was made for servers that could not be changed: all
 * it takes is that the server asks first.
 *
 * A question on a line, which is a socket, is the path with its length before it, the answer one
 * byte. A thread of the helper waits at the other end of each line; so a line has one question at a
 * time, and questions wait for a line. job_is_lost() bounds that for each client. The server asks
 * for files in memory, too, so all clients wait while no line answers. A line whose question is
 * given up is lost; without a line files are looked up by threads.
 * Limit: the loop's own open() is not bounded. It waits where the name has left the caches since
 * the answer, and on file systems that ask another machine at each open, as NFS does.
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

#include "12-aio/appendix/appendix.h"
#include "12-aio/look_up.h"
#include "die.h"
#include "end_with_parent.h"
#include "log.h"
#include "open_below.h"
#include "privileges.h"

#define LINES 20 /* as many as lighttpd's had threads */

struct question {
    uint16_t length;
    char path[REPLY_PATH_MAX];
};

/* A job whose run() is NULL: that tells it from those of look_up.c. */
struct helper_job {
    struct job job; /* first */
    bool answered;  /* else the helper has died */
    struct question question;
};

static struct line {
    int fd, far_end;
    struct helper_job *asked; /* NULL: the line is free */
} lines[LINES];

static pid_t helper;
static int epoll_fd = -1;
static int live; /* lines that work */
static int files_below;
static struct list waiting = EMPTY_LIST(waiting);

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
    close(line->far_end); /* the server sees that no answer will come */
    return NULL;
}

/* Ends when the server closes the lines, and with the server. */
static _Noreturn void helper_main(pid_t parent)
{
    pthread_t threads[LINES];

    privileges_drop();
    end_with_parent(parent); /* after that: a change of user takes the request back */
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

/* What socketpair() is for Unix sockets. If another process connects meanwhile, the ports differ.
 */
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

static void line_lose(struct line *line)
{
    close(line->fd); /* which takes it out of the epoll set, too */
    line->fd = -1;
    if (--live == 0)
        log_line("the helper is gone: files are looked up by threads");
}

/* Puts a question on a free line. Returns false if there is none. */
static bool line_ask(struct helper_job *h)
{
    ssize_t len = (ssize_t)(sizeof h->question.length + h->question.length);

    for (int i = 0; i < LINES; i++) {
        if (lines[i].fd < 0 || lines[i].asked != NULL)
            continue;
        if (send(lines[i].fd, &h->question, (size_t)len, MSG_NOSIGNAL) !=
            len) { /* a free line is empty, so this one is broken */
            line_lose(&lines[i]);
            continue;
        }
        lines[i].asked = h;
        return true;
    }
    return false;
}

static void line_take_answer(struct line *line)
{
    char byte;
    ssize_t n = recv(line->fd, &byte, 1, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        line_lose(line);
    if (line->asked == NULL)
        return;
    line->asked->answered = n > 0;
    job_collected(&line->asked->job);
    line->asked = NULL;
}

static void helper_collect(void)
{
    struct epoll_event events[LINES];
    int n = epoll_wait(epoll_fd, events, LINES, 0);

    for (int i = 0; i < n; i++)
        line_take_answer(events[i].data.ptr);
    while (!list_is_empty(&waiting)) {
        struct job *job = CONTAINER_OF(waiting.next, struct job, node);
        if (live > 0 && !line_ask((struct helper_job *)job) && live > 0)
            return;
        list_remove(&job->node);
        if (live == 0)
            job_collected(job);
    }
}

static void helper_drop(struct job *job)
{
    free(job);
}

/* The helper has not answered this question. Shutting its line brings an event, on which
 * line_take_answer() closes the line and hands the job back. IDLE: that counts as no answer. */
static void line_give_up(struct helper_job *h)
{
    h->job.state = IDLE;
    for (int i = 0; i < LINES; i++)
        if (lines[i].asked == h)
            shutdown(lines[i].fd, SHUT_RDWR);
}

/* Returns false if that cannot be: no memory, jobs_refused(), or the helper is gone. */
static bool helper_begin(struct exchange *x, const char *path)
{
    struct helper_job *h = jobs_refused() ? NULL : calloc(1, sizeof *h);

    if (h == NULL)
        return false;
    h->job.conn = x->conn;
    h->question.length = (uint16_t)strlen(path);
    memcpy(h->question.path, path, h->question.length);
    if (!line_ask(h)) {
        if (live == 0) {
            free(h);
            return false;
        }
        list_append(&waiting, &h->job.node);
    }
    job_begins(&h->job);
    x->held = h;
    return true;
}

/* The find() of struct conn_ops: asks the helper, then the loop opens the file. Where the helper
 * has died look_up_reply() does both. */
static bool helper_find(struct exchange *x, const struct request *req, int docroot_fd)
{
    struct helper_job *h = x->held;
    char path[REPLY_PATH_MAX];

    if (h == NULL && live > 0 && reply_path(req, path) == 0 && helper_begin(x, path))
        return false;
    if (h == NULL || h->job.run != NULL)
        return look_up_reply(x, req, docroot_fd);
    if (h->job.state == UNDER_WAY) {
        if (!job_give_up_if_lost(x, helper_drop))
            return false;
        line_give_up(h);
        reply_error(&x->reply, req, 503);
        return true;
    }
    bool answered = h->answered;
    x->held = NULL;
    free(h);
    if (!answered)
        return look_up_reply(x, req, docroot_fd);
    reply_plan(&x->reply, req, docroot_fd);
    return true;
}

int helper_fd(void)
{
    return epoll_fd;
}

static void helper_start(bool over_tcp, int docroot_fd)
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
        helper_main(parent);
    live = LINES;
    for (int i = 0; i < LINES; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &lines[i]};
        close(lines[i].far_end);
        int flags = fcntl(lines[i].fd, F_GETFL);
        if (flags < 0 || fcntl(lines[i].fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
            epoll_ctl(epoll_fd, EPOLL_CTL_ADD, lines[i].fd, &event) < 0)
            die_errno("a line to the helper");
    }
    jobs_collect_by(helper_collect);
}

bool helper_choose(struct conn_ops *ops, const char *who, int docroot_fd)
{
    if (who == NULL || (strcmp(who, "unix") != 0 && strcmp(who, "tcp") != 0))
        return false;
    helper_start(strcmp(who, "tcp") == 0, docroot_fd);
    ops->find = helper_find;
    return true;
}

void helper_stop(void)
{
    for (int i = 0; i < LINES; i++)
        if (lines[i].fd >= 0)
            close(lines[i].fd);
    while (waitpid(helper, NULL, 0) < 0 && errno == EINTR)
        ;
}
