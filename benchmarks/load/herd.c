/* The processes of the herd, seen from hammer; see herd.h. */
#include "herd.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MOST_EACH = 10000,        /* connections of a process, if it may have so many descriptors */
    WINDOW = 128,             /* on their way at once, of all: fits into any listen backlog */
    OTHER_DESCRIPTORS = 16,   /* of a process: standard streams, what it inherits, one to spare */
    FIRST_SOURCE = 0x7f010001 /* 127.1.0.1 */
};

/* How many connections a process may hold: by its hard limit, which it makes its own. */
static int most_each(uint64_t *most)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -1;
    if (limit.rlim_max <= OTHER_DESCRIPTORS) {
        errno = EMFILE;
        return -1;
    }
    *most = limit.rlim_max - OTHER_DESCRIPTORS;
    if (*most > MOST_EACH)
        *most = MOST_EACH;
    return 0;
}

/* In the new process. Ctrl-C is for hammer, which then asks this process for its report. */
static void settle_in(const struct herd *herd)
{
    struct rlimit limit;

    for (size_t i = 0; i < herd->count; i++)
        if (herd->processes[i].fd >= 0)
            close(herd->processes[i].fd);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        _exit(EXIT_FAILURE);
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        _exit(EXIT_FAILURE);
}

/* As fork(); *control: the process's end of the socket pair. */
static pid_t start_process(struct herd *herd, struct herd_process *p, int *control)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    p->fd = pair[0];
    *control = pair[1];
    p->pid = fork();
    if (p->pid == 0) {
        settle_in(herd);
        return 0;
    }
    int error = errno;
    close(pair[1]);
    if (p->pid > 0) {
        herd->unsettled++;
        return p->pid;
    }
    close(p->fd);
    p->fd = -1;
    errno = error;
    return -1;
}

/* The part of `whole` that the one of `count` processes has which is number `place`. */
static uint64_t part(uint64_t whole, size_t place, size_t count)
{
    return whole * (place + 1) / count - whole * place / count;
}

static int start_herders(struct herd *herd, size_t count, const struct options *o,
                         const struct url_list *urls)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t share = part(o->herd, i, count);
        size_t window = WINDOW / count + 1;
        /* poll() refuses more entries than RLIMIT_NOFILE; a share is always below it. */
        struct herder_task task = {.options = o,
                                   .urls = urls,
                                   .first = o->herd * i / count,
                                   .count = share,
                                   .window = share < window ? share : window,
                                   .own_host = FIRST_SOURCE + (uint32_t)i};
        pid_t pid = start_process(herd, &herd->processes[i], &task.control);
        if (pid == 0)
            herder_run(&task);
        if (pid < 0)
            return -1;
    }
    return 0;
}

/* The processes from `first` on. */
static int start_holders(struct herd *herd, size_t first, const struct options *o,
                         struct url_list *urls)
{
    size_t count = herd->count - first;

    for (size_t i = 0; i < count; i++) {
        struct holder_task task = {
            .options = *o, .urls = urls, .own_host = FIRST_SOURCE + (uint32_t)(first + i)};
        task.options.seed += i;
        task.options.ramp /= (double)count;
        task.options.sources.next = o->sources.count ? i % o->sources.count : 0;
        for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++)
            task.options.wanted[kind] = part(o->wanted[kind], i, count);
        pid_t pid = start_process(herd, &herd->processes[first + i], &task.control);
        if (pid == 0)
            holder_run(&task);
        if (pid < 0)
            return -1;
    }
    return 0;
}

int herd_start(struct herd *herd, const struct options *o, struct url_list *urls,
               const struct url_list *herd_urls)
{
    uint64_t crowd = options_hold_only(o) ? options_crowd_size(o) : 0;
    uint64_t most;

    herd->report.wanted = o->herd;
    if (o->herd + crowd == 0)
        return 0;
    if (most_each(&most) < 0)
        return -1;
    size_t herders = (o->herd + most - 1) / most;
    size_t holders = (crowd + most - 1) / most;
    herd->processes = calloc(herders + holders, sizeof *herd->processes);
    if (!herd->processes)
        return -1;
    herd->count = herders + holders;
    for (size_t i = 0; i < herd->count; i++)
        herd->processes[i] = (struct herd_process){.role = WATCH_HERD, .fd = -1};
    if (start_herders(herd, herders, o, herd_urls) < 0)
        return -1;
    return start_holders(herd, herders, o, urls);
}

uint64_t herd_processes(const struct options *o)
{
    uint64_t crowd = options_hold_only(o) ? options_crowd_size(o) : 0;
    uint64_t most;

    if (o->herd + crowd == 0 || most_each(&most) < 0) /* herd_start() says why not */
        return 0;
    return (o->herd + most - 1) / most + (crowd + most - 1) / most;
}

int herd_watch(struct herd *herd, int epoll_fd)
{
    for (size_t i = 0; i < herd->count; i++) {
        struct herd_process *p = &herd->processes[i];
        uint32_t watched = 0;
        if (watch(epoll_fd, p->fd, p, &watched, EPOLLIN | EPOLLONESHOT) < 0)
            return -1;
    }
    return 0;
}

/* What the process tells next; false at its end. */
static bool listen_to(struct herd_process *p)
{
    ssize_t n;
    do
        n = recv(p->fd, &p->news, sizeof p->news, 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof p->news;
}

static uint64_t failures(const struct crowd_report *r)
{
    return r->refused + r->timed_out + r->answered + r->dropped;
}

void herd_on_event(struct herd *herd, struct herd_process *p)
{
    if (!listen_to(p) || failures(&p->news.report) > 0)
        herd->failed = true;
    else
        herd->report.established += p->news.report.served;
    herd->unsettled--;
}

bool herd_is_settled(const struct herd *herd)
{
    return herd->failed || herd->unsettled == 0;
}

uint64_t herd_established(const struct herd *herd)
{
    uint64_t n = herd->report.established;
    for (size_t i = 0; i < herd->count; i++)
        for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++)
            n += herd->processes[i].news.crowd[kind].established;
    return n;
}

/* One line that says why the herd is not, or no more, what was wanted. */
static void describe(struct herd *herd, int error)
{
    const struct crowd_report *r = &herd->report;
    const char *what = "was closed by the server before it had a reply";

    if (herd->died > 0) {
        snprintf(herd->problem, sizeof herd->problem, "herd: %zu of its processes died",
                 herd->died);
        return;
    }
    if (!herd->failed)
        return;
    if (r->refused > 0)
        what = "could not be opened";
    else if (r->timed_out > 0)
        what = "had no reply in time";
    else if (r->answered > 0)
        what = "had a reply that is not 2xx with keep-alive";
    snprintf(herd->problem, sizeof herd->problem,
             "herd: %" PRIu64 " of %" PRIu64 " connections, the next %s%s%s", r->served, r->wanted,
             what, error ? ": " : "", error ? strerror(error) : "");
}

void herd_finish(struct herd *herd)
{
    int error = 0;

    for (size_t i = 0; i < herd->count; i++)
        if (herd->processes[i].fd >= 0)
            shutdown(herd->processes[i].fd, SHUT_WR);
    for (size_t i = 0; i < herd->count; i++) {
        struct herd_process *p = &herd->processes[i];
        if (p->fd < 0)
            continue;
        while (listen_to(p))
            continue;
        herd->died += !p->news.last;
        error = error ? error : p->news.error;
        crowd_report_add(&herd->report, &p->news.report);
        for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++)
            crowd_report_add(&herd->crowd[kind], &p->news.crowd[kind]);
        close(p->fd);
        p->fd = -1;
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    if (!*herd->problem)
        describe(herd, error);
}

void herd_free(struct herd *herd)
{
    herd_finish(herd);
    free(herd->processes);
    herd->processes = NULL;
    herd->count = 0;
}
