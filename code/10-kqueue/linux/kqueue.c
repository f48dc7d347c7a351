/*
 * kqueue.c: kqueue(2) as FreeBSD's manual page tells it, made of epoll(7), timerfd, eventfd and
 * signalfd.
 *
 * What kqueue promises. An event is known by (ident, filter), so that one descriptor can have two:
 * to read and to write, each with its own udata, its own edges (EV_CLEAR), its own end (EV_ONESHOT,
 * EV_DISPATCH). epoll knows one registration a descriptor. So a queue is two of them: `fd`, which
 * is what kqueue() returns, has the descriptors that are to be read, and `write_fd`, which is
 * inside of `fd`, has those that are to be written. A timer is a timerfd, a user event an eventfd
 * and a signal a signalfd in `fd`: a descriptor of our own that is to be read. Level, edge and one
 * shot are then epoll's own, and one kevent() costs epoll_wait(), a second one if something can be
 * written, one epoll_ctl() a change and one to five calls an event for what it tells; what is idle
 * costs nothing.
 *
 * The table `slots` goes by descriptor. When a descriptor is closed the kernel takes it out of
 * epoll without telling us; the table is then stale for that number, and ENOENT from epoll says so
 * at the next change. Only EV_ADD makes a number live again, with a new generation; an
 * event brings the generation of its registration with it and is dropped if the slot has another.
 *
 * What is not promised:
 * - More than one thread, calls from a signal handler, or a queue in a child after fork().
 * - Other filters. Regular files: epoll refuses them, so EV_ADD fails with EPERM.
 * - A descriptor that was duplicated, by dup() or fork(), stays registered after close() as long as
 *   its duplicate is open, as with epoll itself, and once its number is registered again kevent()
 *   spins over what it must drop: EV_DELETE such a descriptor before close().
 * - close() of a queue leaves write_fd, timerfds and eventfds open; the next kqueue() closes them.
 * - Reading the error of a socket (SO_ERROR) clears it: after EV_EOF with fflags recv() returns 0,
 *   where on a BSD it fails. We keep the error for the later events of that descriptor, until it is
 *   closed or has neither filter any more.
 * - EVFILT_SIGNAL blocks the signal, for good: it is taken from its queue, and no handler runs. One
 *   that came more than once meanwhile is counted once.
 * - EV_ADD of what is there sets its flags anew too; a BSD keeps EV_CLEAR and EV_ONESHOT as they
 *   were.
 * - A socket that is neither connected nor listening has EV_EOF at once: connect() first.
 * - Whether accept() was called we see by the number of TCP connections that are left. At other
 *   listening sockets with EV_CLEAR we do not see it.
 * - Time-outs are rounded up to milliseconds, and one call gives at most MAX_BATCH events. Timers,
 *   user events and signals are searched one by one.
 */
#include "sys/event.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define MAX_BATCH   256   /* events of one kevent(): the array is on the stack */
#define MAX_SECONDS 86400 /* of a time-out, as on OpenBSD */
#define NS          INT64_C(1000000000)

#define KEPT_FLAGS (EV_ONESHOT | EV_CLEAR | EV_DISPATCH)

enum side { SIDE_READ, SIDE_WRITE };

struct knote {
    void *udata;
    uint32_t generation; /* from 1 */
    unsigned short flags;
    bool known;  /* to epoll, as far as we know; also when EV_ONESHOT has disarmed it there */
    bool exists; /* to the caller */
    bool disabled;
};

struct slot {
    struct knote knote[2];
    int error; /* SO_ERROR, which can be read once */
    /* Of a listening socket with EV_CLEAR where more than one connection waited: */
    int waited;       /* how many of them the last event told of; 0: it is not in that list */
    int next_waiting; /* descriptor of the next one, or -1 */
    /* A timer, a user event or a signal, whose knote is the one for SIDE_READ: */
    short filter; /* 0: it is a descriptor of the caller's */
    unsigned fflags;
    uintptr_t ident;
    int64_t data;
    int next; /* descriptor of the next one, or -1 */
};

struct kq {
    struct kq *next;
    struct slot *slots;
    int nslots, sources, waiting, fd, write_fd;
    bool more_writers;
};

/* Global, because kevent() is given a number and nothing else. */
static struct kq *kqs;

/* Room in the table for a descriptor; only for one that is open, so that its number has a bound. */
static int kq_make_room(struct kq *kq, int fd)
{
    int n = kq->nslots > 0 ? kq->nslots : 64;

    if (fd >= 0 && fd < kq->nslots)
        return 0;
    if (fcntl(fd, F_GETFD) < 0)
        return errno;
    while (n <= fd)
        n = n > INT_MAX / 2 ? INT_MAX : 2 * n;
    struct slot *slots = realloc(kq->slots, (size_t)n * sizeof *slots);
    if (slots == NULL)
        return ENOMEM;
    for (int i = kq->nslots; i < n; i++)
        slots[i] = (struct slot){.filter = 0};
    kq->slots = slots;
    kq->nslots = n;
    return 0;
}

/* A disabled knote stays in epoll, which is the only one to notice that its descriptor was closed
 * and that the number is used again. */
static int knote_control(struct kq *kq, enum side side, int fd, int operation)
{
    const struct knote *k = &kq->slots[fd].knote[side];
    struct epoll_event e = {.data.u64 = (uint64_t)k->generation << 32 | (unsigned)fd};

    if (k->disabled) {
        e.events = EPOLLET | EPOLLONESHOT; /* EPOLLHUP may come all the same, but once */
    } else {
        e.events = side == SIDE_READ ? EPOLLIN | EPOLLRDHUP : EPOLLOUT;
        e.events |= k->flags & EV_CLEAR ? EPOLLET : 0;
        e.events |= k->flags & (EV_ONESHOT | EV_DISPATCH) ? EPOLLONESHOT : 0;
    }
    return epoll_ctl(side == SIDE_READ ? kq->fd : kq->write_fd, operation, fd, &e) == 0 ? 0 : errno;
}

/* Whether it is still the same open file: the number may have been closed and given out again. */
static bool is_registered(const struct kq *kq, enum side side, int fd)
{
    int epoll_fd = side == SIDE_READ ? kq->fd : kq->write_fd;
    struct epoll_event e = {.data.u64 = (unsigned)fd}; /* generation 0: no slot has it */

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0)
        return errno == EEXIST;
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, &e);
    return false;
}

static int knote_add(struct kq *kq, enum side side, int fd, const struct kevent *change)
{
    struct knote *k = &kq->slots[fd].knote[side];
    int error = ENOENT;

    k->udata = change->udata;
    k->generation++;
    k->flags = change->flags & KEPT_FLAGS;
    k->disabled = change->flags & EV_DISABLE;
    if (k->known)
        error = knote_control(kq, side, fd, EPOLL_CTL_MOD);
    if (error == ENOENT) { /* the first time, or closed since then and opened again */
        if (kq->slots[fd].error != 0 && !is_registered(kq, !side, fd))
            kq->slots[fd].error = 0;
        error = knote_control(kq, side, fd, EPOLL_CTL_ADD);
    }
    k->known = k->exists = error == 0;
    return error;
}

/* Deletes, enables or disables; and sets udata, as a BSD does. */
static int knote_modify(struct kq *kq, enum side side, int fd, const struct kevent *change)
{
    struct knote *k = &kq->slots[fd].knote[side];
    bool delete = change->flags & EV_DELETE;

    if (!k->exists)
        return fcntl(fd, F_GETFD) < 0 ? errno : ENOENT;
    k->udata = change->udata;
    if (change->flags & (EV_ENABLE | EV_DISABLE))
        k->disabled = !(change->flags & EV_ENABLE);
    int error = knote_control(kq, side, fd, delete ? EPOLL_CTL_DEL : EPOLL_CTL_MOD);
    k->known = k->exists = error == 0 && !delete;
    return error;
}

/* ---- timers, user events and signals --------------------------------------------------------- */

/* The descriptor that stands for this timer, user event or signal, or -1. */
static int source_find(const struct kq *kq, const struct kevent *change)
{
    int fd = kq->sources;

    while (fd >= 0 &&
           (kq->slots[fd].filter != change->filter || kq->slots[fd].ident != change->ident))
        fd = kq->slots[fd].next;
    return fd;
}

static int signal_open(uintptr_t signum)
{
    sigset_t set;

    sigemptyset(&set);
    if (sigaddset(&set, signum <= INT_MAX ? (int)signum : -1) < 0 ||
        sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -1;
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static int filter_open(const struct kevent *change)
{
    if (change->filter == EVFILT_TIMER)
        return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (change->filter == EVFILT_SIGNAL)
        return signal_open(change->ident);
    return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

/* The descriptor, or -1 with errno. */
static int source_open(struct kq *kq, const struct kevent *change)
{
    int fd = filter_open(change);
    int error = fd >= 0 ? kq_make_room(kq, fd) : errno;

    if (error != 0) {
        if (fd >= 0)
            close(fd);
        errno = error;
        return -1;
    }
    kq->slots[fd].filter = change->filter;
    kq->slots[fd].ident = change->ident;
    kq->slots[fd].fflags = 0;
    kq->slots[fd].next = kq->sources;
    kq->sources = fd;
    return fd;
}

static void source_close(struct kq *kq, int fd)
{
    int *link = &kq->sources;

    while (*link != fd)
        link = &kq->slots[*link].next;
    *link = kq->slots[fd].next;
    kq->slots[fd].filter = 0;
    kq->slots[fd].knote[SIDE_READ].known = kq->slots[fd].knote[SIDE_READ].exists = false;
    close(fd);
}

static int timer_set(int fd, const struct kevent *change)
{
    int64_t period = change->data, second;
    bool periodic = !(change->flags & EV_ONESHOT);
    struct itimerspec when = {{0, 0}, {0, 0}};

    switch (change->fflags) {
    case NOTE_SECONDS:
        second = 1;
        break;
    case 0:
    case NOTE_MSECONDS:
        second = 1000;
        break;
    case NOTE_USECONDS:
        second = 1000000;
        break;
    case NOTE_NSECONDS:
        second = NS;
        break;
    default:
        return EINVAL;
    }
    if (period < 0)
        return EINVAL;
    period += period == 0 && periodic;
    when.it_value.tv_sec = (time_t)(period / second);
    when.it_value.tv_nsec = period > 0 ? (long)(period % second * (NS / second)) : 1; /* 0: never */
    if (periodic)
        when.it_interval = when.it_value;
    return timerfd_settime(fd, 0, &when, NULL) == 0 ? 0 : errno;
}

static int user_set(struct slot *slot, int fd, const struct kevent *change)
{
    unsigned flags = change->fflags & NOTE_FFLAGSMASK, operation = change->fflags & NOTE_FFCTRLMASK;
    uint64_t one = 1;

    if (operation == NOTE_FFAND)
        slot->fflags &= flags;
    else if (operation == NOTE_FFOR)
        slot->fflags |= flags;
    else if (operation == NOTE_FFCOPY)
        slot->fflags = flags;
    slot->data = change->data;
    if (change->fflags & NOTE_TRIGGER && write(fd, &one, sizeof one) < 0 && errno != EAGAIN)
        return errno; /* EAGAIN: triggered more often than it can count */
    return 0;
}

/* ---- changes --------------------------------------------------------------------------------- */

static int source_change(struct kq *kq, const struct kevent *change)
{
    int fd = source_find(kq, change), error = 0;
    bool added = fd < 0;

    if (added && !(change->flags & EV_ADD))
        return ENOENT;
    if (added && (fd = source_open(kq, change)) < 0)
        return errno;
    if (change->filter == EVFILT_USER)
        error = user_set(&kq->slots[fd], fd, change);
    else if (change->filter == EVFILT_TIMER && change->flags & EV_ADD)
        error = timer_set(fd, change);
    if (error == 0 && change->flags & EV_ADD)
        error = knote_add(kq, SIDE_READ, fd, change);
    else if (error == 0)
        error = knote_modify(kq, SIDE_READ, fd, change);
    if ((error != 0 && added) || change->flags & EV_DELETE)
        source_close(kq, fd);
    return error;
}

static int kq_change(struct kq *kq, const struct kevent *change)
{
    enum side side = change->filter == EVFILT_WRITE ? SIDE_WRITE : SIDE_READ;
    int fd = change->ident <= INT_MAX ? (int)change->ident : -1, error;

    if (change->filter == EVFILT_TIMER || change->filter == EVFILT_USER ||
        change->filter == EVFILT_SIGNAL)
        return source_change(kq, change);
    if (change->filter != EVFILT_READ && change->filter != EVFILT_WRITE)
        return EINVAL;
    if ((error = kq_make_room(kq, fd)) != 0)
        return error;
    return change->flags & EV_ADD ? knote_add(kq, side, fd, change)
                                  : knote_modify(kq, side, fd, change);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* How many connections wait to be accepted, as TCP counts them; 0 if fd does not listen. */
static int connections_waiting(int fd)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0 || info.tcpi_state != TCP_LISTEN)
        return 0;
    return (int)info.tcpi_unacked;
}

/* On a BSD accept() runs the filter again: while more wait there are events, EV_CLEAR or not. */
static void accepts_again(struct kq *kq)
{
    for (int *link = &kq->waiting; *link >= 0;) {
        int fd = *link, left = connections_waiting(fd);
        struct slot *slot = &kq->slots[fd];
        if (left == slot->waited) { /* none was accepted, or as many have come as were */
            link = &slot->next_waiting;
            continue;
        }
        if (left > 0 && left < slot->waited && slot->knote[SIDE_READ].exists)
            knote_control(kq, SIDE_READ, fd, EPOLL_CTL_MOD);
        slot->waited = 0;
        *link = slot->next_waiting;
    }
}

static void remember_waiting(struct kq *kq, int fd, int n)
{
    struct slot *slot = &kq->slots[fd];

    if (slot->waited == 0) {
        slot->next_waiting = kq->waiting;
        kq->waiting = fd;
    }
    slot->waited = n;
}

static int64_t waiting_to_be_read(struct kq *kq, int fd)
{
    int n;

    if (ioctl(fd, FIONREAD, &n) == 0)
        return n;
    n = connections_waiting(fd);
    if (n > 1 && kq->slots[fd].knote[SIDE_READ].flags & EV_CLEAR)
        remember_waiting(kq, fd, n);
    return n > 0 ? n : 1; /* where it is not said how many, it is one at least */
}

static int64_t room_to_write(int fd)
{
    int room, used = 0;
    socklen_t size = sizeof room;

    if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &size) == 0)
        return ioctl(fd, TIOCOUTQ, &used) == 0 && used < room ? room - used : 1;
    room = fcntl(fd, F_GETPIPE_SZ);
    return room > 0 && ioctl(fd, FIONREAD, &used) == 0 && used < room ? room - used : 1;
}

/* Whether we shut it for sending: epoll does not report that, but sending 0 bytes then fails. Not
 * for sockets with messages, where 0 bytes would be one. */
static bool is_shut_for_writing(int fd, int *error)
{
    int type;
    socklen_t size = sizeof type;

    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_STREAM ||
        send(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL) == 0 || errno == EAGAIN)
        return false;
    if (errno != EPIPE) /* SO_ERROR: it has come since, and is taken away */
        *error = errno;
    return true;
}

static void descriptor_event(struct kq *kq, enum side side, uint32_t events, struct kevent *out)
{
    int fd = (int)out->ident, error;
    struct slot *slot = &kq->slots[fd];
    socklen_t size = sizeof error;
    bool end = events & EPOLLHUP || (side == SIDE_READ && events & EPOLLRDHUP);

    if (events & EPOLLERR) {
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
            end = true; /* a pipe without a reader */
        else if (error != 0)
            slot->error = error;
    }
    out->data = side == SIDE_READ ? waiting_to_be_read(kq, fd) : room_to_write(fd);
    if (end || (side == SIDE_WRITE && is_shut_for_writing(fd, &slot->error))) {
        out->flags |= EV_EOF;
        out->fflags = (unsigned)slot->error;
    }
}

static bool source_event(const struct slot *slot, int fd, struct kevent *out)
{
    union {
        uint64_t times;
        struct signalfd_siginfo signal;
    } what;

    EV_SET(out, slot->ident, slot->filter, out->flags, slot->fflags, slot->data, out->udata);
    if (slot->filter == EVFILT_USER && !(out->flags & EV_CLEAR))
        return true;
    if (read(fd, &what, sizeof what) < 0)
        return false; /* EAGAIN: it was not so any more */
    if (slot->filter != EVFILT_USER) {
        out->data = slot->filter == EVFILT_TIMER ? (int64_t)what.times : 1;
        out->flags |= EV_CLEAR;
    }
    return true;
}

/* How many events it is, one or none: what was disabled or belongs to a former owner of the number
 * is not reported. */
static int knote_report(struct kq *kq, enum side side, const struct epoll_event *e,
                        struct kevent *out)
{
    /* region: stale */
    int fd = (int)(uint32_t)e->data.u64;
    struct slot *slot = &kq->slots[fd];
    struct knote *k = &slot->knote[side];

    if (k->generation != e->data.u64 >> 32 || !k->exists || k->disabled)
        return 0;
    /* endregion: stale */
    EV_SET(out, fd, side == SIDE_READ ? EVFILT_READ : EVFILT_WRITE, k->flags, 0, 0, k->udata);
    if (slot->filter == 0)
        descriptor_event(kq, side, e->events, out);
    else if (!source_event(slot, fd, out))
        return 0;
    k->disabled = k->flags & EV_DISPATCH; /* EPOLLONESHOT has done so in the kernel already */
    if (k->flags & EV_ONESHOT) {
        k->exists = false;
        if (slot->filter != 0)
            source_close(kq, fd);
    }
    return 1;
}

/* Writable descriptors. If there is no room for all, they come first the next time: within `fd`
 * write_fd is one descriptor among many, and would have its turn once in as many calls. */
static int collect_writers(struct kq *kq, struct kevent *events, int room)
{
    struct epoll_event ready[MAX_BATCH];
    int nready = epoll_wait(kq->write_fd, ready, room, 0), n = 0;

    kq->more_writers = nready == room;
    for (int i = 0; i < nready; i++)
        n += knote_report(kq, SIDE_WRITE, &ready[i], &events[n]);
    return n;
}

/* Never takes more out of epoll than there is room for: an edge that was taken must be reported. */
static int kq_collect(struct kq *kq, struct kevent *events, int nevents, int milliseconds)
{
    struct epoll_event ready[MAX_BATCH];
    int room = nevents < MAX_BATCH ? nevents : MAX_BATCH;
    int n = kq->more_writers ? collect_writers(kq, events, (room + 1) / 2) : 0;
    bool writable = false, told = n > 0;

    if (n == room) { /* there was room for one */
        kq->more_writers = false;
        return n;
    }
    int nready = epoll_wait(kq->fd, ready, room - n, told ? 0 : milliseconds);
    if (nready < 0 && !told) {
        errno = errno == EINVAL ? EBADF : errno; /* the queue is closed, its number used again */
        return -1;
    }
    for (int i = 0; i < nready; i++) {
        if (ready[i].data.u64 == (unsigned)kq->write_fd) /* generation 0: no slot */
            writable = !told;
        else
            n += knote_report(kq, SIDE_READ, &ready[i], &events[n]);
    }
    /* The event of write_fd itself was not reported: there is room for one at least. */
    return writable ? n + collect_writers(kq, events + n, room - n) : n;
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS + t.tv_nsec;
}

static int kq_wait(struct kq *kq, struct kevent *events, int nevents,
                   const struct timespec *timeout)
{
    int64_t left = 0, end = 0;
    int n, milliseconds = -1;

    if (timeout != NULL) {
        if (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec >= NS) {
            errno = EINVAL;
            return -1;
        }
        end = timeout->tv_sec < MAX_SECONDS ? timeout->tv_sec : MAX_SECONDS;
        end = now_ns() + end * NS + timeout->tv_nsec;
    }
    accepts_again(kq);
    do {
        if (timeout != NULL) {
            left = end - now_ns();
            milliseconds = left > 0 ? (int)((left + 999999) / 1000000) : 0;
        }
        n = kq_collect(kq, events, nevents, milliseconds);
    } while (n == 0 && (timeout == NULL || left > 0));
    return n;
}

/* ---- the interface --------------------------------------------------------------------------- */

static void kq_free(struct kq *kq)
{
    while (kq->sources >= 0)
        source_close(kq, kq->sources);
    if (kq->fd >= 0)
        close(kq->fd);
    if (kq->write_fd >= 0)
        close(kq->write_fd);
    free(kq->slots);
    free(kq);
}

static int kq_link(const struct kq *kq, int operation)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = (unsigned)kq->write_fd};

    return epoll_ctl(kq->fd, operation, kq->write_fd, &e);
}

/* Frees what was closed: a queue is open as long as its number is an epoll that has its
 * write_fd. */
static void kq_sweep(void)
{
    struct kq **link = &kqs;

    while (*link != NULL) {
        struct kq *kq = *link;
        if (kq_link(kq, EPOLL_CTL_MOD) == 0) {
            link = &kq->next;
        } else {
            *link = kq->next;
            kq->fd = -1; /* not ours any more */
            kq_free(kq);
        }
    }
}

int kqueue(void)
{
    struct kq *kq;

    kq_sweep();
    kq = calloc(1, sizeof *kq);
    if (kq == NULL)
        return -1;
    kq->sources = kq->waiting = -1;
    kq->fd = epoll_create1(EPOLL_CLOEXEC);
    kq->write_fd = epoll_create1(EPOLL_CLOEXEC);
    if (kq->fd < 0 || kq->write_fd < 0 || kq_link(kq, EPOLL_CTL_ADD) < 0) {
        int saved = errno;
        kq_free(kq);
        errno = saved;
        return -1;
    }
    kq->next = kqs;
    kqs = kq;
    return kq->fd;
}

int kevent(int kq_fd, const struct kevent *changes, int nchanges, struct kevent *events,
           int nevents, const struct timespec *timeout)
{
    struct kq *kq = kqs;
    int n = 0;

    while (kq != NULL && kq->fd != kq_fd)
        kq = kq->next;
    if (kq == NULL || nchanges < 0 || nevents < 0) {
        errno = kq == NULL ? EBADF : EINVAL;
        return -1;
    }
    for (int i = 0; i < nchanges; i++) {
        struct kevent change = changes[i]; /* a copy: events may be the same array */
        int error = kq_change(kq, &change);
        if (error == 0 && !(change.flags & EV_RECEIPT))
            continue;
        if (n == nevents) {
            errno = error;
            return error != 0 ? -1 : n;
        }
        change.flags = EV_ERROR;
        change.data = error;
        events[n++] = change;
    }
    return n > 0 || nevents == 0 ? n : kq_wait(kq, events, nevents, timeout);
}
