/* A process of the herd; see herder.h. */
#include "herder.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "clock.h"
#include "reply.h"
#include "run.h"

/* ---- herder ------------------------------------------------------------------------------- */

/* A connection between connect() and the end of its reply. */
struct opening {
    int fd; /* -1: free */
    bool sent;
    uint64_t until;
    const struct url *url;
    struct reply reply;
};

struct herder {
    const struct herder_task *task;
    struct source_list own;     /* the one address of this process */
    struct source_list sources; /* of --source */
    struct opening *openings;   /* task->window of them */
    struct pollfd *polled;      /* one for each, after the one for `control` */
    int *held;
    size_t held_count;
    uint64_t begun;
    char *scratch;
    struct herd_news news;
    bool failed;
    bool ended; /* hammer wants the end, or has gone */
};

/* A herd is complete or of no use: the first failure ends the opening. */
static void fail(struct herder *h, struct opening *o, uint64_t *kind, int error)
{
    if (o->fd >= 0)
        close(o->fd);
    o->fd = -1;
    (*kind)++;
    h->news.report.reset += kind == &h->news.report.dropped && error == ECONNRESET;
    h->news.error = error;
    h->failed = true;
}

static struct source_list *sources_for(struct herder *h, const struct endpoint *endpoint)
{
    bool ours = h->sources.count == 0 && endpoint->address.ss_family == AF_INET &&
                endpoint_is_loopback(endpoint);
    return ours ? &h->own : &h->sources;
}

static void begin(struct herder *h, struct opening *o)
{
    const struct herder_task *t = h->task;
    const struct endpoint *endpoint;

    o->url = &t->urls->items[(t->first + h->begun++) % t->urls->count];
    o->sent = false;
    o->until = clock_now() + t->options->timeout_ns;
    reply_begin(&o->reply, t->options->head);
    endpoint = &t->urls->endpoints[o->url->endpoint];
    o->fd = dial(endpoint, sources_for(h, endpoint), 0);
    if (o->fd < 0)
        fail(h, o, &h->news.report.refused, errno);
}

/* A new connection takes a request at once; if not, it is dead already. */
static void ask(struct herder *h, struct opening *o)
{
    int error = dial_result(o->fd);

    if (error != 0)
        fail(h, o, &h->news.report.refused, error);
    else if (send(o->fd, o->url->request, o->url->request_length, MSG_NOSIGNAL) !=
             (ssize_t)o->url->request_length)
        fail(h, o, &h->news.report.dropped, errno);
    else
        o->sent = true;
}

static bool is_kept(const struct reply *reply)
{
    return reply->response.status / 100 == 2 && reply->response.persistent &&
           reply->body.kind != BODY_BY_CLOSE;
}

static void take_reply(struct herder *h, struct opening *o)
{
    ssize_t n = recv(o->fd, h->scratch, SCRATCH_SIZE, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        fail(h, o, &h->news.report.dropped, errno);
        return;
    }
    enum reply_result result =
        n > 0 ? reply_feed(&o->reply, h->scratch, (size_t)n) : reply_end(&o->reply);
    if (result == REPLY_MORE)
        return;
    if (result == REPLY_SHORT) {
        fail(h, o, &h->news.report.dropped, 0);
    } else if (result != REPLY_COMPLETE || !is_kept(&o->reply)) {
        fail(h, o, &h->news.report.answered, 0);
    } else {
        h->news.report.served++;
        h->held[h->held_count++] = o->fd;
        o->fd = -1;
    }
}

/* Fills the window, and tells how many ms the next time-out is away. */
static int prepare(struct herder *h, uint64_t now)
{
    uint64_t until = now + 60 * NS_PER_S;

    for (size_t i = 0; i < h->task->window && !h->failed; i++) {
        struct opening *o = &h->openings[i];
        if (o->fd < 0 && h->begun < h->task->count)
            begin(h, o);
        if (o->fd >= 0 && o->until < until)
            until = o->until;
        h->polled[i + 1] = (struct pollfd){.fd = o->fd, .events = o->sent ? POLLIN : POLLOUT};
    }
    return until > now ? (int)((until - now) / NS_PER_MS) + 1 : 0;
}

static void advance(struct herder *h, struct opening *o, bool ready, uint64_t now)
{
    if (ready && !o->sent)
        ask(h, o);
    else if (ready)
        take_reply(h, o);
    else if (now >= o->until)
        fail(h, o, &h->news.report.timed_out, 0);
}

static void open_all(struct herder *h)
{
    h->polled[0] = (struct pollfd){.fd = h->task->control, .events = POLLIN};
    while (!h->failed && !h->ended && h->held_count < h->task->count) {
        int wait_ms = prepare(h, clock_now());
        if (h->failed)
            return;
        if (poll(h->polled, h->task->window + 1, wait_ms) < 0) {
            if (errno == EINTR)
                continue;
            h->news.report.refused++; /* else what is there would pass for the whole herd */
            h->news.error = errno;
            h->failed = true;
            return;
        }
        uint64_t now = clock_now();
        h->ended = h->polled[0].revents != 0;
        for (size_t i = 0; i < h->task->window && !h->failed; i++)
            if (h->openings[i].fd >= 0)
                advance(h, &h->openings[i], h->polled[i + 1].revents != 0, now);
    }
}

static void tell(struct herder *h)
{
    /* If hammer has gone nobody wants to know. */
    if (send(h->task->control, &h->news, sizeof h->news, MSG_NOSIGNAL) < 0)
        h->ended = true;
}

/* hammer tells nothing but its end. */
static void await_end(struct herder *h)
{
    char byte;
    while (!h->ended)
        h->ended = recv(h->task->control, &byte, 1, 0) >= 0 || errno != EINTR;
}

/* Nobody has asked for anything: bytes, or the end, mean that the server has dropped it. */
static void count_held(struct herder *h)
{
    struct crowd_report *r = &h->news.report;
    char byte;

    for (size_t i = 0; i < h->held_count; i++) {
        ssize_t n = recv(h->held[i], &byte, 1, MSG_PEEK);
        r->reset += n < 0 && errno == ECONNRESET;
        *(n < 0 && errno == EAGAIN ? &r->held : n > 0 ? &r->answered : &r->dropped) += 1;
    }
}

/*
 * With a reset: the usual close would leave each address and port in TIME_WAIT for a minute, on
 * our side because we close first, and with it memory that the next herd is measured against.
 */
static void close_all(struct herder *h)
{
    const struct linger reset = {.l_onoff = 1};

    for (size_t i = 0; i < h->held_count; i++) {
        /* If it cannot be set, the usual close is as good. */
        (void)setsockopt(h->held[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(h->held[i]);
    }
}

/* What is allocated here is given back by the end of the process. */
_Noreturn void herder_run(const struct herder_task *task)
{
    struct in_addr own_address = {.s_addr = htonl(task->own_host)};
    struct herder h = {.task = task,
                       .own = {.items = &own_address, .count = 1},
                       .sources = task->options->sources};

    h.openings = calloc(task->window, sizeof *h.openings);
    h.polled = calloc(task->window + 1, sizeof *h.polled);
    h.held = calloc(task->count, sizeof *h.held);
    h.scratch = malloc(SCRATCH_SIZE);
    if (!h.openings || !h.polled || !h.held || !h.scratch)
        _exit(EXIT_FAILURE);
    for (size_t i = 0; i < task->window; i++)
        h.openings[i].fd = -1;
    if (h.sources.count > 0)
        h.sources.next = task->first % h.sources.count;
    open_all(&h);
    if (!h.ended)
        tell(&h);
    await_end(&h);
    count_held(&h);
    h.news.last = true;
    tell(&h);
    close_all(&h);
    _exit(EXIT_SUCCESS);
}

/* ---- holder ------------------------------------------------------------------------------- */

enum { MAX_EVENTS = 128 };

struct control {
    enum watch_role role; /* first: see clock.h */
    int fd;
    bool ended; /* hammer wants the end, or has gone */
};

static bool all_are_loopback_v4(const struct url_list *urls)
{
    for (size_t i = 0; i < urls->endpoint_count; i++)
        if (urls->endpoints[i].address.ss_family != AF_INET ||
            !endpoint_is_loopback(&urls->endpoints[i]))
            return false;
    return true;
}

/* An engine with a crowd and nothing else. */
static int set_up(struct engine *e, struct control *control, struct in_addr *own,
                  struct holder_task *task)
{
    uint32_t watched = 0;

    *e = (struct engine){
        .options = &task->options, .urls = task->urls, .sources = task->options.sources};
    if (e->sources.count == 0 && all_are_loopback_v4(task->urls))
        e->sources = (struct source_list){.items = own, .count = 1};
    e->scratch = malloc(SCRATCH_SIZE);
    e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!e->scratch || e->epoll_fd < 0)
        return -1;
    if (watch(e->epoll_fd, control->fd, control, &watched, EPOLLIN) < 0)
        return -1;
    return crowd_init(e, task->options.wanted);
}

static void tell_of_crowd(struct control *control, const struct engine *e, bool last)
{
    struct herd_news news = {.last = last};

    memcpy(news.crowd, e->crowd.reports, sizeof news.crowd);
    /* If hammer has gone nobody wants to know. */
    if (send(control->fd, &news, sizeof news, MSG_NOSIGNAL) < 0)
        control->ended = true;
}

static void await(struct engine *e, struct control *control, uint64_t now)
{
    struct epoll_event events[MAX_EVENTS];

    int n = watch_wait(e->epoll_fd, events, MAX_EVENTS, now, crowd_next(&e->crowd));
    if (n < 0 && errno != EINTR)
        control->ended = true;
    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr == control)
            control->ended = true; /* hammer tells nothing but its end */
        else
            crowd_on_event(e, events[i].data.ptr);
    }
}

/* Until hammer asks for the end. */
static void hold(struct engine *e, struct control *control)
{
    bool told = false;

    crowd_begin(e, clock_now());
    while (!control->ended) {
        uint64_t now = clock_now();
        crowd_expire(e, now);
        if (!told && crowd_is_settled(&e->crowd)) {
            crowd_note_established(&e->crowd);
            tell_of_crowd(control, e, false);
            told = true;
        }
        await(e, control, now);
    }
    if (!told)
        crowd_note_established(&e->crowd);
    crowd_note_held(&e->crowd);
    tell_of_crowd(control, e, true);
    crowd_hang_up(&e->crowd);
}

/* What is allocated here is given back by the end of the process. */
_Noreturn void holder_run(struct holder_task *task)
{
    struct in_addr own = {.s_addr = htonl(task->own_host)};
    struct control control = {.role = WATCH_HERD, .fd = task->control};
    struct engine e;

    if (set_up(&e, &control, &own, task) < 0)
        _exit(EXIT_FAILURE);
    hold(&e, &control);
    _exit(EXIT_SUCCESS);
}
