/* One process of the crowd; see holder.h. */
#include "holder.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "engine.h"
#include "herd.h"

enum { MAX_EVENTS = 128 };

struct control {
    enum watch_role role; /* first: see watch.h */
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

static void tell(struct control *control, const struct engine *e, bool last)
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
            tell(control, e, false);
            told = true;
        }
        await(e, control, now);
    }
    if (!told)
        crowd_note_established(&e->crowd);
    crowd_note_held(&e->crowd);
    tell(control, e, true);
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
