/* waits.c: epoll, poll and select: where the server sleeps, the world goes on. */
#include "sim.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "stop.h"

#define IDLE_WAITS 5000 /* so many in a row that bring nothing: the server spins */

void (*tell_kqueue)(int fd);

uint32_t ready(int fd)
{
    const struct fd *f = &fds[fd];
    const struct sock *s = f->sock;
    uint32_t events = 0;

    switch (f->kind) {
    case A_LISTENER:
        return listener_ready() ? EPOLLIN : 0;
    case AN_EVENTFD:
    case A_SIGNALFD:
        return f->count > 0 ? EPOLLIN : 0;
    case A_SOCKET:
        events |= can_read(s) ? EPOLLIN : 0;
        events |= can_write(s) ? EPOLLOUT : 0;
        events |= s->in_fin || s->in_rst ? EPOLLRDHUP : 0;
        events |= (s->in_fin && s->fin) || s->in_rst ? EPOLLHUP : 0;
        return events | (s->in_rst ? EPOLLERR : 0);
    default:
        return 0;
    }
}

void tell(int fd)
{
    if (fd < 0)
        return;
    fds[fd].epoll.pending = true;
    if (tell_kqueue != NULL)
        tell_kqueue(fd);
}

/* ---- what each wait has in common */

static long idle_waits;

void wait_begins(void)
{
    if (!w.waited)
        peers_begin();
    w.waited = true;
    w.room_lacked = sockets_held() >= clients_most();
    if (w.phase != CHAOS && ++idle_waits > IDLE_WAITS)
        fault("it spins: %d waits in a row, and no byte read or sent", IDLE_WAITS);
}

void wait_brought(bool something)
{
    if (something)
        idle_waits = 0;
}

/* Until collect() has something; -1 with EINTR after the signal. */
static int wait_for(int (*collect)(void *, int), void *events, int most, int timeout_ms)
{
    long long until = timeout_ms < 0 ? NEVER : w.now + timeout_ms * MS;
    bool told = w.told;

    step();
    wait_begins();
    for (;;) {
        int n = !told && w.told ? -1 : collect(events, most);
        if (n < 0)
            errno = EINTR;
        if (n == 0 && pass_time(until) && w.now < NEVER) {
            signal_due();
            continue;
        }
        int error = errno;
        TRACE("waited: %d", n);
        stall();
        errno = error;
        return n;
    }
}

/* ---- epoll */

WRAP(int, epoll_create1, int flags)
{
    (void)flags;
    return new_fd(AN_EPOLL);
}

WRAP(int, epoll_ctl, int epoll_fd, int op, int fd, struct epoll_event *event)
{
    struct fd *f = get_fd(fd, "epoll_ctl()");

    get_fd(epoll_fd, "epoll_ctl()");
    step();
    if (f->kind == A_SOCKET && fails(w.calls_fail)) {
        f->sock->excuse = "an error of a call";
        errno = ENOMEM;
        return -1;
    }
    if (op == EPOLL_CTL_DEL) {
        f->epoll.there = false;
        return 0;
    }
    if (f->epoll.there != (op == EPOLL_CTL_MOD))
        fault("epoll_ctl(%d): %s", fd, op == EPOLL_CTL_MOD ? "it is not there" : "it is there");
    f->epoll = (struct interest){.there = true,
                                 .edge = (event->events & EPOLLET) != 0,
                                 .pending = true,
                                 .events = event->events,
                                 .data = event->data.ptr};
    TRACE("epoll_ctl(%d,%s%s%s)", fd, (event->events & EPOLLIN) != 0 ? " in" : "",
          (event->events & EPOLLOUT) != 0 ? " out" : "", f->epoll.edge ? " edge" : "");
    return 0;
}

static int collect_epoll(void *to, int most)
{
    struct epoll_event *events = to;
    int n = 0, first = (int)pick((unsigned)fds_end);

    most = one_in(3) ? 1 + (int)pick(8) : most; /* others come a moment later */
    for (int i = 0; i < fds_end && n < most; i++) {
        int fd = (first + i) % fds_end;
        struct interest *e = &fds[fd].epoll;
        if (fds[fd].kind == UNUSED || !e->there || (e->edge && !e->pending))
            continue;
        uint32_t now = ready(fd) & (e->events | EPOLLHUP | EPOLLERR);
        e->pending = false;
        if (now != 0)
            events[n++] = (struct epoll_event){.events = now, .data.ptr = e->data};
    }
    return n;
}

WRAP(int, epoll_wait, int epoll_fd, struct epoll_event *events, int most, int timeout_ms)
{
    get_fd(epoll_fd, "epoll_wait()");
    return wait_for(collect_epoll, events, most, timeout_ms);
}

/* ---- poll */

static int collect_poll(void *to, int count)
{
    struct pollfd *p = to;
    int n = 0;

    for (int i = 0; i < count; i++) {
        p[i].revents = 0;
        if (p[i].fd < 0)
            continue;
        get_fd(p[i].fd, "poll()");
        uint32_t now = ready(p[i].fd);
        if ((now & EPOLLIN) != 0 && (p[i].events & POLLIN) != 0)
            p[i].revents |= POLLIN;
        if ((now & EPOLLOUT) != 0 && (p[i].events & POLLOUT) != 0)
            p[i].revents |= POLLOUT;
        if ((now & (EPOLLHUP | EPOLLERR)) != 0 ||
            (fds[p[i].fd].kind == A_LISTENER && stopping && now != 0))
            p[i].revents |= POLLHUP;
        n += p[i].revents != 0;
    }
    return n;
}

int __real_poll(struct pollfd *p, nfds_t count, int timeout_ms);
WRAP(int, poll, struct pollfd *p, nfds_t count, int timeout_ms)
{
    if (count == 1 && p->fd >= 0 && p->fd < 3) /* the log */
        return __real_poll(p, count, timeout_ms);
    return wait_for(collect_poll, p, (int)count, timeout_ms);
}

/* ---- select */

struct sets {
    fd_set *readable, *writable;
    fd_set wanted_readable, wanted_writable;
};

static int collect_select(void *to, int highest)
{
    struct sets *sets = to;
    int n = 0;

    FD_ZERO(sets->readable);
    FD_ZERO(sets->writable);
    for (int fd = 0; fd < highest; fd++) {
        bool in = FD_ISSET(fd, &sets->wanted_readable), out = FD_ISSET(fd, &sets->wanted_writable);
        if (!in && !out)
            continue;
        get_fd(fd, "select()");
        uint32_t now = ready(fd);
        if (in && (now & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
            FD_SET(fd, sets->readable);
            n++;
        }
        if (out && (now & (EPOLLOUT | EPOLLERR)) != 0) {
            FD_SET(fd, sets->writable);
            n++;
        }
    }
    return n;
}

WRAP(int, select, int count, fd_set *in, fd_set *out, fd_set *bad, struct timeval *limit)
{
    struct sets sets = {in, out, *in, *out};
    int timeout_ms = limit != NULL ? (int)(limit->tv_sec * 1000 + limit->tv_usec / 1000) : -1;

    (void)bad;
    return wait_for(collect_select, &sets, count, timeout_ms);
}
