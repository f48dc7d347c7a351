/* kqueue.c: kqueue() and kevent() of 10-kqueue: readiness by level, answers to changes first. */
#include "sim.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/event.h>

static bool is_edge_told(int fd, int which)
{
    struct interest *k = &fds[fd].kq[which];

    return !k->edge || k->pending;
}

static void note(int fd)
{
    fds[fd].kq[0].pending = fds[fd].kq[1].pending = true;
}

int kqueue(void)
{
    tell_kqueue = note;
    return new_fd(OTHER);
}

/* Returns its errno. The kernel may say that it has no memory before it looks at the number. */
static int change(const struct kevent *c)
{
    if (c->filter == EVFILT_SIGNAL)
        return 0;
    int fd = (int)c->ident;
    if (fails(w.calls_fail)) {
        if (fds[fd].kind == A_SOCKET)
            fds[fd].sock->excuse = "an error of a call";
        return one_in(2) ? ENOMEM : ENOSPC;
    }
    if (fds[fd].kind == UNUSED)
        return EBADF;
    struct interest *k = &fds[fd].kq[c->filter == EVFILT_WRITE];
    if ((c->flags & EV_ADD) != 0)
        *k = (struct interest){.there = true,
                               .enabled = true,
                               .pending = true,
                               .edge = (c->flags & EV_CLEAR) != 0,
                               .data = c->udata};
    if (!k->there)
        return ENOENT;
    if ((c->flags & EV_DISABLE) != 0)
        k->enabled = false;
    if ((c->flags & EV_ENABLE) != 0)
        k->enabled = k->pending = true;
    if ((c->flags & EV_DELETE) != 0)
        k->there = false;
    return 0;
}

static int collect(struct kevent *events, int most)
{
    int n = 0, first = (int)pick((unsigned)fds_end);

    most = one_in(3) && most > 8 ? 1 + (int)pick(8) : most;
    for (int i = 0; i < 2 * fds_end && n < most; i++) {
        int fd = (first + i / 2) % fds_end, which = i % 2;
        struct interest *k = &fds[fd].kq[which];
        uint32_t wanted = which == 0 ? EPOLLIN : EPOLLOUT;
        if (fds[fd].kind == UNUSED || !k->there || !k->enabled || !is_edge_told(fd, which))
            continue;
        k->pending = false;
        if ((ready(fd) & (wanted | EPOLLERR | EPOLLHUP)) != 0)
            EV_SET(&events[n++], fd, which == 0 ? EVFILT_READ : EVFILT_WRITE, 0, 0, 0, k->data);
    }
    return n;
}

int kevent(int kq, const struct kevent *changes, int nchanges, struct kevent *events, int nevents,
           const struct timespec *limit)
{
    long long until =
        limit == NULL ? NEVER : w.now + limit->tv_sec * S + limit->tv_nsec / 1000 / MS * MS;
    int n = 0;

    get_fd(kq, "kevent()");
    step();
    for (int i = 0; i < nchanges; i++) {
        struct kevent c = changes[i]; /* `events` may be the same array */
        int error = change(&c);
        TRACE("kevent(%d, %s, %x): %d", (int)c.ident, c.filter == EVFILT_READ ? "read" : "write",
              c.flags, error);
        if (error == 0 && (c.flags & EV_RECEIPT) == 0)
            continue;
        if (n == nevents) {
            errno = error;
            return -1;
        }
        EV_SET(&events[n], c.ident, c.filter, EV_ERROR, 0, error, c.udata);
        n++;
    }
    if (n > 0 || nevents == 0)
        return n;
    bool told = w.told;
    wait_begins();
    while ((n = collect(events, nevents)) == 0 && !(w.told && !told) && pass_time(until))
        signal_due();
    if (n == 0 && w.told && !told) {
        errno = EINTR;
        return -1;
    }
    TRACE("waited: %d", n);
    stall();
    return n;
}
