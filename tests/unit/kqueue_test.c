/*
 * kqueue_test: what kqueue(2) promises, sentence by sentence. The sentences are those of the manual
 * pages of FreeBSD and OpenBSD, shortened; each function names its own. Where they say nothing,
 * nothing is asked that the kernels do not do alike. On Linux this tests code/10-kqueue/linux, on a
 * BSD the system. No test needs luck: what must not come is waited for QUIET ms, what must come for
 * PATIENCE.
 *
 * Run: build/asan/kqueue_test
 */
#include <sys/types.h>
#include <sys/event.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

#ifndef NOTE_MSECONDS /* macOS and libkqueue: that is what they take it to be without a unit */
#define NOTE_MSECONDS 0
#endif

#define OLD_FLAGS (EV_CLEAR | EV_ONESHOT | EV_DISPATCH)
#define QUIET     30    /* ms */
#define PATIENCE  10000 /* ms */
#define MANY      5000
#define SPARE     64 /* descriptors that the test of many leaves alone */

/* Their addresses are what udata is compared with. */
static char a_mark, b_mark;
static char *const A = &a_mark, *const B = &b_mark;

static void need(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(EXIT_FAILURE);
    }
}

static int new_queue(void)
{
    int kq = kqueue();

    need(kq, "kqueue");
    return kq;
}

/* One change and no event: 0 or errno. */
static int change(int kq, int ident, int filter, int flags, unsigned fflags, int64_t data,
                  void *udata)
{
    struct kevent c;

    EV_SET(&c, (uintptr_t)ident, filter, flags, fflags, data, udata);
    return kevent(kq, &c, 1, NULL, 0, NULL) == 0 ? 0 : errno;
}

static int events_within(int kq, struct kevent *events, int most, int ms)
{
    struct timespec timeout = {ms / 1000, ms % 1000 * 1000000L};

    memset(events, 0, (size_t)most * sizeof *events);
    return kevent(kq, NULL, 0, events, most, &timeout);
}

/* Nothing comes, and the wait does not keep a processor busy. */
static bool quiet(int kq)
{
    struct kevent e;
    clock_t start = clock();

    return events_within(kq, &e, 1, QUIET) == 0 &&
           clock() - start < CLOCKS_PER_SEC / 1000 * QUIET / 2;
}

/* Exactly one event is there: the one for (ident, filter) with udata. */
static bool one(int kq, struct kevent *e, int ident, int filter, const void *udata)
{
    struct kevent events[2];
    int n = events_within(kq, events, 2, PATIENCE);

    *e = events[0];
    return n == 1 && e->ident == (uintptr_t)ident && (int)e->filter == filter &&
           e->udata == udata && !(e->flags & EV_ERROR);
}

static void put(int fd, size_t len)
{
    char bytes[100] = {0};

    need(write(fd, bytes, len) == (ssize_t)len ? 0 : -1, "write");
}

static void take(int fd, size_t len)
{
    char bytes[100];

    need(read(fd, bytes, len) == (ssize_t)len ? 0 : -1, "read");
}

static void close2(const int *fd)
{
    close(fd[0]);
    close(fd[1]);
}

static int listen_on_loopback(struct sockaddr_in *address)
{
    socklen_t len = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    need(bind(fd, (struct sockaddr *)address, sizeof *address), "bind");
    need(listen(fd, 8), "listen");
    need(getsockname(fd, (struct sockaddr *)address, &len), "getsockname");
    return fd;
}

static int connect_to(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    need(connect(fd, (const struct sockaddr *)address, sizeof *address), "connect");
    return fd;
}

static void tcp_pair(int *fd)
{
    struct sockaddr_in address;
    int listen_fd = listen_on_loopback(&address);

    fd[0] = connect_to(&address);
    fd[1] = accept(listen_fd, NULL, NULL);
    need(fd[1], "accept");
    close(listen_fd);
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void sleep_ms(int ms)
{
    struct timespec t = {0, ms * 1000000L};

    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        continue;
}

/* "The filter is executed upon the initial registration"; "is also run when the user attempts to
 * retrieve the kevent"; "will aggregate the events into a single struct kevent". */
static void test_level(void)
{
    int kq = new_queue(), p[2];
    struct kevent e;

    need(pipe(p), "pipe");
    put(p[1], 3);
    tap_ok(change(kq, p[0], EVFILT_READ, EV_ADD, 0, 0, A) == 0, "level: EV_ADD");
    tap_ok(one(kq, &e, p[0], EVFILT_READ, A) && e.data == 3, "level: there before EV_ADD");
    tap_ok(one(kq, &e, p[0], EVFILT_READ, A) && e.data == 3, "level: not read, so there again");
    put(p[1], 4);
    tap_ok(one(kq, &e, p[0], EVFILT_READ, A) && e.data == 7, "level: two writes are one event");
    take(p[0], 7);
    tap_ok(quiet(kq), "level: what was read before kevent() is not returned");
    tap_ok(!(e.flags & (EV_EOF | EV_CLEAR | EV_ONESHOT)) && e.fflags == 0, "level: nothing else");
    close2(p);
    close(kq);
}

/* "EV_CLEAR: Reset the state of the event after it is retrieved by the user." */
static void test_clear(void)
{
    int kq = new_queue(), s[2];
    struct kevent e;

    need(socketpair(AF_UNIX, SOCK_STREAM, 0, s), "socketpair");
    change(kq, s[0], EVFILT_READ, EV_ADD | EV_CLEAR, 0, 0, A);
    put(s[1], 3);
    tap_ok(one(kq, &e, s[0], EVFILT_READ, A) && e.data == 3, "EV_CLEAR: one event");
    tap_ok(e.flags & EV_CLEAR, "EV_CLEAR: is among the flags of the event");
    tap_ok(quiet(kq), "EV_CLEAR: not read, and yet not there again");
    put(s[1], 2);
    tap_ok(one(kq, &e, s[0], EVFILT_READ, A) && e.data == 5, "EV_CLEAR: again after more came");
    tap_ok(quiet(kq), "EV_CLEAR: and only once");
    close2(s);
    close(kq);
}

/* "A kevent is identified by the (ident, filter) pair": what one filter does is not the other's. */
static void test_two_filters(void)
{
    int kq = new_queue(), s[2], seen[2] = {0, 0};
    struct kevent e;

    need(socketpair(AF_UNIX, SOCK_STREAM, 0, s), "socketpair");
    change(kq, s[0], EVFILT_READ, EV_ADD, 0, 0, A);
    change(kq, s[0], EVFILT_WRITE, EV_ADD | EV_CLEAR, 0, 0, B);
    tap_ok(one(kq, &e, s[0], EVFILT_WRITE, B), "two filters: it can be written, not read");
    put(s[1], 1);
    tap_ok(one(kq, &e, s[0], EVFILT_READ, A), "two filters: EV_CLEAR of one, then the other");
    tap_ok(one(kq, &e, s[0], EVFILT_READ, A), "two filters: which is level-triggered");
    change(kq, s[0], EVFILT_WRITE, EV_DELETE, 0, 0, NULL);
    change(kq, s[0], EVFILT_WRITE, EV_ADD | EV_DISPATCH, 0, 0, B);
    for (int i = 0; i < 8; i++)
        if (events_within(kq, &e, 1, PATIENCE) == 1)
            seen[e.filter == EVFILT_WRITE]++;
    tap_ok(seen[0] == 7 && seen[1] == 1, "two filters: EV_DISPATCH of one: %d and %d", seen[0],
           seen[1]);
    change(kq, s[0], EVFILT_WRITE, EV_DELETE, 0, 0, NULL);
    change(kq, s[0], EVFILT_WRITE, EV_ADD, 0, 0, B);
    tap_ok(change(kq, s[0], EVFILT_READ, EV_DELETE, 0, 0, NULL) == 0, "two filters: EV_DELETE");
    tap_ok(one(kq, &e, s[0], EVFILT_WRITE, B), "two filters: the other one stays");
    change(kq, s[0], EVFILT_READ, EV_ADD, 0, 0, A);
    seen[0] = seen[1] = 0;
    for (int i = 0; i < 8; i++)
        if (events_within(kq, &e, 1, PATIENCE) == 1)
            seen[e.filter == EVFILT_WRITE]++;
    tap_ok(seen[0] > 0 && seen[1] > 0, "two filters: none starves: %d and %d", seen[0], seen[1]);
    close2(s);
    close(kq);
}

/* "EV_ONESHOT: Return only the first occurrence. After the user retrieves the event it is
 * deleted." */
static void test_oneshot(void)
{
    int kq = new_queue(), p[2];
    struct kevent e;

    need(pipe(p), "pipe");
    put(p[1], 1);
    change(kq, p[0], EVFILT_READ, EV_ADD | EV_ONESHOT, 0, 0, A);
    tap_ok(one(kq, &e, p[0], EVFILT_READ, A), "EV_ONESHOT: the first");
    put(p[1], 1);
    tap_ok(quiet(kq), "EV_ONESHOT: no second");
    tap_ok(change(kq, p[0], EVFILT_READ, EV_DELETE, 0, 0, NULL) == ENOENT, "EV_ONESHOT: deleted");
    tap_ok(change(kq, p[0], EVFILT_READ, EV_ENABLE, 0, 0, A) == ENOENT, "EV_ONESHOT: for good");
    tap_ok(change(kq, p[0], EVFILT_READ, EV_ADD, 0, 0, B) == 0, "EV_ONESHOT: may be added again");
    tap_ok(one(kq, &e, p[0], EVFILT_READ, B) && one(kq, &e, p[0], EVFILT_READ, B),
           "EV_ONESHOT: and is not one-shot then");
    close2(p);
    close(kq);
}

/* "EV_DISPATCH: Disable the event source immediately after delivery of an event." */
static void test_dispatch(void)
{
    int kq = new_queue(), p[2];
    struct kevent e;

    need(pipe(p), "pipe");
    put(p[1], 1);
    change(kq, p[0], EVFILT_READ, EV_ADD | EV_DISPATCH, 0, 0, A);
    tap_ok(one(kq, &e, p[0], EVFILT_READ, A), "EV_DISPATCH: the first");
    put(p[1], 1);
    tap_ok(quiet(kq), "EV_DISPATCH: disabled");
    tap_ok(change(kq, p[0], EVFILT_READ, 0, 0, 0, A) == 0 && quiet(kq), "EV_DISPATCH: it stays so");
    tap_ok(change(kq, p[0], EVFILT_READ, EV_ENABLE, 0, 0, A) == 0, "EV_DISPATCH: EV_ENABLE");
    tap_ok(one(kq, &e, p[0], EVFILT_READ, A) && e.data == 2, "EV_DISPATCH: reported again");
    tap_ok(quiet(kq), "EV_DISPATCH: and disabled again");
    tap_ok(change(kq, p[0], EVFILT_READ, EV_DELETE, 0, 0, NULL) == 0, "EV_DISPATCH: still there");
    close2(p);
    close(kq);
}

/* "EV_DISABLE: Disable the event so kevent() will not return it. The filter itself is not
 * disabled." "Adding an event automatically enables it, unless overridden by the EV_DISABLE
 * flag." */
static void test_disable(void)
{
    int kq = new_queue(), p[2];
    struct kevent e;

    need(pipe(p), "pipe");
    change(kq, p[0], EVFILT_READ, EV_ADD | EV_CLEAR | EV_DISABLE, 0, 0, A);
    put(p[1], 1);
    tap_ok(quiet(kq), "EV_DISABLE: with EV_ADD");
    change(kq, p[0], EVFILT_READ, EV_ENABLE, 0, 0, A);
    tap_ok(one(kq, &e, p[0], EVFILT_READ, A), "EV_ENABLE: what happened meanwhile is reported");
    change(kq, p[0], EVFILT_READ, EV_DISABLE, 0, 0, A);
    close(p[1]);
    tap_ok(quiet(kq), "EV_DISABLE: also for the end of the pipe");
    change(kq, p[0], EVFILT_READ, EV_ENABLE, 0, 0, A);
    tap_ok(one(kq, &e, p[0], EVFILT_READ, A) && e.flags & EV_EOF && e.data == 1,
           "EV_ENABLE: the end is reported, with the byte before it");
    close(p[0]);
    close(kq);
}

/* "ENOENT: The event could not be found to be modified or deleted." EBADF, EINVAL. */
static void test_errors(void)
{
    int kq = new_queue(), p[2];
    struct timespec bad = {0, 1000000000L}, past = {-1, 0}, less = {0, -1};
    struct kevent e;

    need(pipe(p), "pipe");
    tap_ok(change(kq, p[0], EVFILT_READ, EV_DELETE, 0, 0, NULL) == ENOENT, "EV_DELETE: ENOENT");
    tap_ok(change(kq, p[0], EVFILT_READ, EV_ENABLE, 0, 0, NULL) == ENOENT, "EV_ENABLE: ENOENT");
    tap_ok(change(kq, 1, EVFILT_TIMER, EV_DELETE, 0, 0, NULL) == ENOENT, "timer: ENOENT");
    tap_ok(change(kq, 1, EVFILT_USER, 0, NOTE_TRIGGER, 0, NULL) == ENOENT, "user event: ENOENT");
    tap_ok(change(kq, p[0], EVFILT_READ, EV_ADD, 0, 0, NULL) == 0 &&
               change(kq, p[0], EVFILT_READ, EV_DELETE, 0, 0, NULL) == 0 &&
               change(kq, p[0], EVFILT_READ, EV_DELETE, 0, 0, NULL) == ENOENT,
           "EV_DELETE: ENOENT the second time");
    tap_ok(change(kq, p[0], 0x7000, EV_ADD, 0, 0, NULL) == EINVAL, "no such filter: EINVAL");
    tap_ok(change(p[0], p[0], EVFILT_READ, EV_ADD, 0, 0, NULL) == EBADF, "no queue: EBADF");
    tap_ok(kevent(kq, NULL, 0, &e, 1, &bad) == -1 && errno == EINVAL, "no time-out: EINVAL");
    tap_ok(kevent(kq, NULL, 0, &e, 1, &past) == -1 && errno == EINVAL &&
               kevent(kq, NULL, 0, &e, 1, &less) == -1 && errno == EINVAL,
           "a time-out of less than nothing: EINVAL");
    close2(p);
    tap_ok(change(kq, p[0], EVFILT_READ, EV_ADD, 0, 0, NULL) == EBADF, "not open: EBADF");
    tap_ok(change(kq, 0x7ffffff0, EVFILT_READ, EV_ADD, 0, 0, NULL) == EBADF, "never was: EBADF");
    tap_ok(change(kq, -1, EVFILT_WRITE, EV_ADD, 0, 0, NULL) == EBADF, "-1: EBADF");
    close(kq);
    tap_ok(kevent(kq, NULL, 0, &e, 1, NULL) == -1 && errno == EBADF, "closed queue: EBADF");
    need(pipe(p), "pipe");
    tap_ok((p[0] == kq || p[1] == kq) && kevent(kq, NULL, 0, &e, 1, NULL) == -1 && errno == EBADF,
           "closed queue, its number is a pipe's: EBADF");
    close2(p);
}

/* "If an error occurs while processing an element of the changelist and there is enough room in the
 * eventlist, then the event will be placed in the eventlist with EV_ERROR set in flags and the
 * system error in data. Otherwise, -1 will be returned." */
static void test_error_events(void)
{
    int kq = new_queue(), p[2];
    struct kevent c[3], e[3];

    need(pipe(p), "pipe");
    put(p[1], 1);
    EV_SET(&c[0], (uintptr_t)p[1], EVFILT_READ, EV_DELETE, 0, 0, A);
    EV_SET(&c[1], (uintptr_t)p[0], EVFILT_READ, EV_ADD, 0, 0, A);
    EV_SET(&c[2], 77, EVFILT_TIMER, EV_ENABLE, 0, 0, B);
    int n = kevent(kq, c, 3, e, 3, NULL);
    tap_ok(n == 2, "errors: two, and no event beside them: %d", n);
    tap_ok(e[0].ident == (uintptr_t)p[1] && e[0].filter == EVFILT_READ && e[0].udata == A &&
               e[0].flags & EV_ERROR && e[0].data == ENOENT,
           "errors: the first");
    tap_ok(e[1].ident == 77 && e[1].filter == EVFILT_TIMER && e[1].udata == B &&
               e[1].flags & EV_ERROR && e[1].data == ENOENT,
           "errors: the second");
    tap_ok(one(kq, e, p[0], EVFILT_READ, A), "errors: the change between them was made");
    tap_ok(kevent(kq, c, 3, NULL, 0, NULL) == -1 && errno == ENOENT, "errors: no room at all");
    tap_ok(kevent(kq, c, 3, e, 1, NULL) == -1 && errno == ENOENT, "errors: room for one of two");
    n = kevent(kq, c, 3, c, 3, NULL);
    tap_ok(n == 2 && c[0].ident == (uintptr_t)p[1] && c[1].ident == 77 && c[1].data == ENOENT,
           "errors: the same array may be used for both lists");
    close2(p);
    close(kq);
}

/* "All changes contained in the changelist are applied before any pending events are read." */
static void test_change_list(void)
{
    int kq = new_queue(), p[4][2], seen = 0;
    struct kevent c[5], e;

    for (int i = 0; i < 4; i++) {
        need(pipe(p[i]), "pipe");
        put(p[i][1], 1);
        EV_SET(&c[i], (uintptr_t)p[i][0], EVFILT_READ, EV_ADD | EV_CLEAR, 0, 0, p[i]);
    }
    EV_SET(&c[4], (uintptr_t)p[3][0], EVFILT_READ, EV_DELETE, 0, 0, NULL);
    int n = kevent(kq, c, 5, &e, 1, NULL);
    tap_ok(n == 1 && !(e.flags & EV_ERROR), "change list: longer than the event list: %d", n);
    for (; n == 1; n = events_within(kq, &e, 1, QUIET))
        for (int i = 0; i < 4; i++)
            if (e.udata == p[i] && e.ident == (uintptr_t)p[i][0])
                seen += 1 << 2 * i;
    tap_ok(seen == 0x15, "change list: the rest comes later, each once: %#x", (unsigned)seen);
    for (int i = 0; i < 4; i++)
        close2(p[i]);
    close(kq);
}

/* "Re-adding an existing event will modify the parameters of the original event, and not result
 * in a duplicate entry." */
static void test_add_twice(void)
{
    int kq = new_queue(), p[2];
    struct kevent e;

    need(pipe(p), "pipe");
    put(p[1], 1);
    change(kq, p[0], EVFILT_READ, EV_ADD, 0, 0, A);
    tap_ok(change(kq, p[0], EVFILT_READ, EV_ADD, 0, 0, B) == 0, "EV_ADD twice");
    tap_ok(one(kq, &e, p[0], EVFILT_READ, B), "EV_ADD twice: the second udata, one event");
    change(kq, p[0], EVFILT_READ, EV_DISABLE, 0, 0, B);
    change(kq, p[0], EVFILT_READ, EV_ADD | EV_ENABLE, 0, 0, A);
    tap_ok(one(kq, &e, p[0], EVFILT_READ, A), "EV_ADD twice: enabled again");
    change(kq, p[0], EVFILT_READ, EV_ADD | EV_DISABLE, 0, 0, A);
    tap_ok(quiet(kq), "EV_ADD twice: disabled again");
    tap_ok(change(kq, p[0], EVFILT_READ, EV_DELETE, 0, 0, NULL) == 0 && quiet(kq) &&
               change(kq, p[0], EVFILT_READ, EV_DELETE, 0, 0, NULL) == ENOENT,
           "EV_ADD twice: one EV_DELETE");
    close2(p);
    close(kq);
}

/* "EV_RECEIPT: making bulk changes without draining any pending events. It forces EV_ERROR to
 * always be returned. When a filter is successfully added the data field will be zero." "If
 * there is no remaining space in eventlist, then subsequent changes will not get processed." */
static void test_receipt(void)
{
    int kq = new_queue(), p[2];
    struct kevent c[3], e[4];

    need(pipe(p), "pipe");
    put(p[1], 1);
    EV_SET(&c[0], (uintptr_t)p[0], EVFILT_READ, EV_ADD | EV_RECEIPT, 0, 0, A);
    EV_SET(&c[1], (uintptr_t)p[1], EVFILT_READ, EV_DELETE | EV_RECEIPT, 0, 0, NULL);
    EV_SET(&c[2], (uintptr_t)p[1], EVFILT_WRITE, EV_ADD | EV_RECEIPT, 0, 0, B);
    int n = kevent(kq, c, 3, e, 4, NULL);
    tap_ok(n == 3, "EV_RECEIPT: one for each change, and no event: %d", n);
    tap_ok(e[0].flags & EV_ERROR && e[0].data == 0 && e[0].udata == A && e[1].flags & EV_ERROR &&
               e[1].data == ENOENT && e[2].flags & EV_ERROR && e[2].data == 0,
           "EV_RECEIPT: 0, ENOENT, 0");
    tap_ok(events_within(kq, e, 4, PATIENCE) == 2, "EV_RECEIPT: the events are there later");
    EV_SET(&c[0], (uintptr_t)p[0], EVFILT_READ, EV_DELETE | EV_RECEIPT, 0, 0, NULL);
    EV_SET(&c[1], (uintptr_t)p[1], EVFILT_WRITE, EV_DELETE, 0, 0, NULL);
    tap_ok(kevent(kq, c, 2, NULL, 0, NULL) == 0, "EV_RECEIPT: no room is no error");
    tap_ok(one(kq, e, p[1], EVFILT_WRITE, B), "EV_RECEIPT: but the next change is not made");
    close2(p);
    close(kq);
}

/* "If the read direction of the socket has shutdown, then the filter also sets EV_EOF. It is
 * possible for EOF to be returned while there is still data pending in the socket buffer." */
static void test_half_close(void)
{
    int kq = new_queue(), s[2];
    struct kevent e;

    tcp_pair(s);
    change(kq, s[0], EVFILT_READ, EV_ADD, 0, 0, A);
    put(s[1], 5);
    tap_ok(one(kq, &e, s[0], EVFILT_READ, A) && e.data == 5 && !(e.flags & EV_EOF),
           "EV_EOF: not yet");
    shutdown(s[1], SHUT_WR);
    sleep_ms(QUIET); /* the FIN is on its way */
    tap_ok(one(kq, &e, s[0], EVFILT_READ, A) && e.data == 5 && e.flags & EV_EOF,
           "EV_EOF: 5 bytes are left");
    tap_ok(e.fflags == 0, "EV_EOF: without an error");
    take(s[0], 5);
    tap_ok(one(kq, &e, s[0], EVFILT_READ, A) && e.data == 0 && e.flags & EV_EOF,
           "EV_EOF: still there when all was read");
    change(kq, s[0], EVFILT_READ, EV_DELETE, 0, 0, NULL);
    change(kq, s[0], EVFILT_WRITE, EV_ADD, 0, 0, B);
    tap_ok(one(kq, &e, s[0], EVFILT_WRITE, B) && !(e.flags & EV_EOF) && e.data > 0,
           "EV_EOF: the other direction goes on");
    close2(s);
    close(kq);
}

static void reset(int fd)
{
    struct linger at_once = {1, 0};

    need(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), "SO_LINGER");
    close(fd);
}

/* "... and returns the socket error (if any) in fflags." Until somebody reads, it is there. */
static void test_reset(void)
{
    int kq = new_queue(), s[2], reported = 0;
    struct kevent e[2];

    tcp_pair(s);
    change(kq, s[0], EVFILT_WRITE, EV_ADD | EV_DISABLE, 0, 0, B);
    change(kq, s[0], EVFILT_READ, EV_ADD, 0, 0, A);
    reset(s[1]);
    tap_ok(one(kq, e, s[0], EVFILT_READ, A) && e[0].flags & EV_EOF && e[0].fflags == ECONNRESET,
           "reset: EV_EOF, and ECONNRESET in fflags");
    change(kq, s[0], EVFILT_WRITE, EV_ENABLE, 0, 0, B);
    for (int n = events_within(kq, e, 2, PATIENCE), i = 0; i < n; i++)
        if (e[i].flags & EV_EOF && e[i].fflags == ECONNRESET)
            reported |= e[i].udata == A ? 1 : 2;
    tap_ok(reported == 3, "reset: for both filters, as long as nobody reads: %d", reported);
    int number = s[0];
    close(s[0]);
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, s), "socketpair");
    shutdown(s[s[0] == number], SHUT_WR);
    change(kq, number, EVFILT_READ, EV_ADD, 0, 0, A);
    tap_ok(one(kq, e, number, EVFILT_READ, A) && e[0].flags & EV_EOF && e[0].fflags == 0,
           "reset: the next socket of that number has no error");
    close2(s);

    tcp_pair(s);
    change(kq, s[0], EVFILT_READ, EV_ADD, 0, 0, A);
    put(s[1], 3);
    reset(s[1]);
    sleep_ms(QUIET); /* the data, and after it the RST, are on their way */
    tap_ok(one(kq, e, s[0], EVFILT_READ, A) && e[0].fflags == ECONNRESET, "reset: after data");
    change(kq, s[0], EVFILT_WRITE, EV_ADD, 0, 0, B);
    change(kq, s[0], EVFILT_READ, EV_DELETE, 0, 0, A);
    tap_ok(one(kq, e, s[0], EVFILT_WRITE, B) && e[0].flags & EV_EOF && e[0].fflags == ECONNRESET,
           "reset: told to a filter that is added later");
    close(s[0]);
    close(kq);

    /* To see that the number has another owner leaves nothing in the list of the other filter. */
    kq = new_queue();
    tcp_pair(s);
    change(kq, s[0], EVFILT_READ, EV_ADD, 0, 0, A);
    reset(s[1]);
    number = s[0];
    tap_ok(one(kq, e, number, EVFILT_READ, A) && e[0].fflags == ECONNRESET, "reset: one filter");
    close(number);
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, s), "socketpair");
    change(kq, number, EVFILT_READ, EV_ADD, 0, 0, A);
    tap_ok(change(kq, number, EVFILT_WRITE, EV_ADD, 0, 0, B) == 0 &&
               one(kq, e, number, EVFILT_WRITE, B),
           "reset: the next socket of that number has two");
    close2(s);
    close(kq);
}

/* "EV_CLEAR: Reset the state." accept() sets it anew while others wait, in all BSDs; a bare look does
 * not. */
static void test_listen_clear(int kq)
{
    struct sockaddr_in address;
    int listen_fd = listen_on_loopback(&address), fd[6];
    struct kevent e;

    change(kq, listen_fd, EVFILT_READ, EV_ADD | EV_CLEAR, 0, 0, A);
    for (int i = 0; i < 3; i++)
        fd[i] = connect_to(&address);
    sleep_ms(QUIET);
    tap_ok(one(kq, &e, listen_fd, EVFILT_READ, A) && e.data == 3, "listen, EV_CLEAR: three wait");
    tap_ok(quiet(kq), "listen, EV_CLEAR: told once");
    for (int i = 3; i < 6; i++) {
        fd[i] = accept(listen_fd, NULL, NULL);
        if (i < 5)
            tap_ok(one(kq, &e, listen_fd, EVFILT_READ, A) && e.data == 5 - i,
                   "listen, EV_CLEAR: again after accept(), %d wait", 5 - i);
        tap_ok(quiet(kq), "listen, EV_CLEAR: and once");
    }
    for (int i = 0; i < 6; i++)
        close(fd[i]);
    close(listen_fd);
}

/* "Sockets which have previously been passed to listen() return when there is an incoming
 * connection pending. data contains the size of the listen backlog." */
static void test_listen(void)
{
    struct sockaddr_in address;
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    int kq = new_queue(), listen_fd = listen_on_loopback(&address), fd[3];
    struct kevent e;

    change(kq, listen_fd, EVFILT_READ, EV_ADD, 0, 0, A);
    tap_ok(quiet(kq), "listen: nobody comes");
    fd[0] = connect_to(&address);
    fd[1] = connect_to(&address);
    sleep_ms(QUIET);
    tap_ok(one(kq, &e, listen_fd, EVFILT_READ, A) && e.data == 2 && !(e.flags & EV_EOF),
           "listen: two wait");
    fd[2] = accept(listen_fd, NULL, NULL);
    tap_ok(one(kq, &e, listen_fd, EVFILT_READ, A) && e.data == 1, "listen: one waits");
    close(fd[2]);
    fd[2] = accept(listen_fd, NULL, NULL);
    tap_ok(quiet(kq), "listen: both are accepted");
    for (int i = 0; i < 3; i++)
        close(fd[i]);
    close(listen_fd);
    test_listen_clear(kq);

    snprintf(path.sun_path, sizeof path.sun_path, "%s/kqueue_test.%ld",
             getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp", (long)getpid());
    listen_fd = socket(AF_UNIX, SOCK_STREAM, 0);
    need(bind(listen_fd, (struct sockaddr *)&path, sizeof path), path.sun_path);
    need(listen(listen_fd, 8), "listen");
    fd[0] = socket(AF_UNIX, SOCK_STREAM, 0);
    need(connect(fd[0], (struct sockaddr *)&path, sizeof path), "connect");
    unlink(path.sun_path);
    change(kq, listen_fd, EVFILT_READ, EV_ADD, 0, 0, B);
    tap_ok(one(kq, &e, listen_fd, EVFILT_READ, B) && e.data == 1, "listen: a Unix socket too");
    close(fd[0]);
    close(listen_fd);
    close(kq);
}

static void fill(int fd)
{
    static char bytes[65536];
    ssize_t n;

    need(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), "O_NONBLOCK");
    for (size_t len = sizeof bytes; len > 0; len /= 2) /* to the last byte */
        while ((n = write(fd, bytes, len)) > 0)
            continue;
    need(errno == EAGAIN ? 0 : -1, "write");
}

static size_t drain(int fd)
{
    static char bytes[65536];
    size_t all = 0;
    ssize_t n;

    need(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), "O_NONBLOCK");
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        all += (size_t)n;
    return all;
}

/* "EVFILT_WRITE returns whenever it is possible to write. data will contain the amount of space
 * remaining in the write buffer. The filter will set EV_EOF when the reader disconnects." */
static void test_write(void)
{
    int kq = new_queue(), fd[2];
    struct kevent e;

    for (int sockets = 0; sockets <= 1; sockets++) {
        const char *kind = sockets ? "socket" : "pipe";
        need(sockets ? (tcp_pair(fd), 0) : pipe(fd), "pipe");
        int out = fd[1], in = fd[0];
        change(kq, out, EVFILT_WRITE, EV_ADD, 0, 0, A);
        tap_ok(one(kq, &e, out, EVFILT_WRITE, A) && e.data > 0, "%s: empty", kind);
        int64_t room = e.data;
        put(out, 100);
        if (!sockets) /* what a peer on this machine has got takes no room */
            tap_ok(one(kq, &e, out, EVFILT_WRITE, A) && e.data < room, "pipe: less room");
        bool full = false;
        for (int i = 0; !full && i < 20; i++) { /* what is on its way makes room when it arrives */
            fill(out);
            full = quiet(kq);
        }
        tap_ok(full, "%s: full", kind);
        while (events_within(kq, &e, 1, QUIET) == 0)
            drain(in);
        tap_ok(one(kq, &e, out, EVFILT_WRITE, A) && e.data > 0 && !(e.flags & EV_EOF),
               "%s: room again", kind);
        close2(fd);
    }
    need(pipe(fd), "pipe");
    change(kq, fd[1], EVFILT_WRITE, EV_ADD, 0, 0, A);
    close(fd[0]);
    tap_ok(one(kq, &e, fd[1], EVFILT_WRITE, A) && e.flags & EV_EOF, "pipe: nobody reads any more");
    close(fd[1]);
    close(kq);
}

/* After shutdown() of one's own "it is not possible to write" any more: EV_EOF. */
static void test_shut_for_writing(void)
{
    int kq = new_queue(), s[2];
    struct kevent e;
    char byte;

    for (int tcp = 0; tcp <= 1; tcp++) {
        const char *kind = tcp ? "TCP" : "Unix";
        need(tcp ? (tcp_pair(s), 0) : socketpair(AF_UNIX, SOCK_STREAM, 0, s), "socketpair");
        change(kq, s[0], EVFILT_WRITE, EV_ADD | EV_CLEAR, 0, 0, A);
        tap_ok(one(kq, &e, s[0], EVFILT_WRITE, A) && !(e.flags & EV_EOF), "%s: open", kind);
        shutdown(s[0], SHUT_WR);
        tap_ok(one(kq, &e, s[0], EVFILT_WRITE, A) && e.flags & EV_EOF && e.fflags == 0,
               "%s: EV_EOF after one's own SHUT_WR", kind);
        put(s[1], 1);
        change(kq, s[0], EVFILT_WRITE, EV_DELETE, 0, 0, A);
        change(kq, s[0], EVFILT_READ, EV_ADD, 0, 0, B);
        tap_ok(one(kq, &e, s[0], EVFILT_READ, B) && !(e.flags & EV_EOF) && e.data == 1,
               "%s: the other direction goes on", kind);
        close2(s);
    }
    need(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), "socketpair");
    change(kq, s[0], EVFILT_WRITE, EV_ADD, 0, 0, A);
    tap_ok(one(kq, &e, s[0], EVFILT_WRITE, A) && !(e.flags & EV_EOF) &&
               recv(s[1], &byte, 1, MSG_DONTWAIT) < 0,
           "datagrams: to look whether one may be sent sends none");
    close2(s);
    close(kq);
}

/* "Pipes: When the last writer disconnects, the filter will set EV_EOF." "Kqueues: Returns when
 * pending events are present on the queue." "Vnodes: Returns when the file pointer is not at the
 * end of file; data contains the offset to it", which epoll cannot. */
static void test_other_descriptors(void)
{
    int kq = new_queue(), inner = new_queue(), p[2], error;
    FILE *file = tmpfile();
    struct kevent e;

    need(pipe(p), "pipe");
    change(kq, p[0], EVFILT_READ, EV_ADD, 0, 0, A);
    put(p[1], 2);
    close(p[1]);
    tap_ok(one(kq, &e, p[0], EVFILT_READ, A) && e.flags & EV_EOF && e.data == 2, "pipe: EV_EOF");
    take(p[0], 2);
    tap_ok(one(kq, &e, p[0], EVFILT_READ, A) && e.flags & EV_EOF && e.data == 0, "pipe: empty");
    close(p[0]);

    change(kq, inner, EVFILT_READ, EV_ADD, 0, 0, B);
    tap_ok(quiet(kq), "queue in a queue: nothing pending");
    change(inner, 1, EVFILT_USER, EV_ADD, NOTE_TRIGGER, 0, NULL);
    tap_ok(one(kq, &e, inner, EVFILT_READ, B) && e.data == 1, "queue in a queue: an event");
    close(inner);

    need(file == NULL ? -1 : 0, "tmpfile");
    need(fputs("abc", file) < 0 || fflush(file) != 0 || fseek(file, 0, SEEK_SET) < 0 ? -1 : 0,
         "tmpfile");
    error = change(kq, fileno(file), EVFILT_READ, EV_ADD, 0, 0, A);
    tap_ok(error == EPERM ||
               (error == 0 && one(kq, &e, fileno(file), EVFILT_READ, A) && e.data == 3),
           "regular file: %s", error == 0 ? "3 bytes" : strerror(error));
    tap_ok(error == 0 || change(kq, fileno(file), EVFILT_READ, EV_DELETE, 0, 0, NULL) == ENOENT,
           "regular file: there, or not");
    fclose(file);
    tap_ok(quiet(kq), "regular file: gone with its descriptor");
    close(kq);
}

/* "EVFILT_TIMER: data specifies the timeout period. The timer will be periodic unless EV_ONESHOT
 * is specified. On return, data contains the number of times the timeout has expired since the
 * last call to kevent(). This filter automatically sets the EV_CLEAR flag." */
static void test_timer(void)
{
    static const struct {
        unsigned unit;
        int64_t period;
        int ms;
    } units[] = {{0, 20, 20},
                 {NOTE_MSECONDS, 20, 20},
                 {NOTE_USECONDS, 20000, 20},
                 {NOTE_NSECONDS, 20000000, 20},
                 {NOTE_SECONDS, 1, 1000}};
    int kq = new_queue();
    struct kevent e;

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        int64_t start = now_ms();
        change(kq, 7, EVFILT_TIMER, EV_ADD | EV_ONESHOT, units[i].unit, units[i].period, A);
        tap_ok(one(kq, &e, 7, EVFILT_TIMER, A) && e.data == 1 &&
                   now_ms() - start >= units[i].ms - 1,
               "timer: %d ms in units %#x", units[i].ms, units[i].unit);
    }
    tap_ok(quiet(kq) && change(kq, 7, EVFILT_TIMER, EV_DELETE, 0, 0, NULL) == ENOENT,
           "timer: one shot");
    change(kq, 7, EVFILT_TIMER, EV_ADD, 0, 10, A);
    sleep_ms(60);
    tap_ok(one(kq, &e, 7, EVFILT_TIMER, A) && e.data >= 5 && e.flags & EV_CLEAR,
           "timer: periodic, 5 times at least in 60 ms");
    tap_ok(one(kq, &e, 7, EVFILT_TIMER, A) && e.data >= 1 && e.data < 1000, "timer: counts anew");
    change(kq, 8, EVFILT_TIMER, EV_ADD | EV_DISABLE, 0, 10, B);
    change(kq, 7, EVFILT_TIMER, EV_DELETE, 0, 0, NULL);
    tap_ok(quiet(kq), "timer: one deleted, one disabled");
    change(kq, 8, EVFILT_TIMER, EV_ENABLE, 0, 10, B);
    tap_ok(one(kq, &e, 8, EVFILT_TIMER, B), "timer: enabled");
    change(kq, 9, EVFILT_TIMER, EV_ADD | EV_ONESHOT, 0, 0, A);
    change(kq, 8, EVFILT_TIMER, EV_DELETE, 0, 0, NULL);
    tap_ok(one(kq, &e, 9, EVFILT_TIMER, A) && e.data == 1, "timer: a period of 0, once");
    close(kq);
}

/* "If an existing timer is re-added, the existing timer will be effectively canceled (throwing
 * away any undelivered record of previous timer expiration) and re-started using the new
 * parameters." "Periodic timers with a timeout of 0 will be silently adjusted to timeout after 1
 * of the units." */
static void test_timer_again(void)
{
    int kq = new_queue();
    struct kevent e;

    change(kq, 7, EVFILT_TIMER, EV_ADD, 0, 5, A);
    sleep_ms(QUIET);
    change(kq, 7, EVFILT_TIMER, EV_ADD, NOTE_SECONDS, 1000, B);
    tap_ok(quiet(kq), "timer again: started anew");
    change(kq, 7, EVFILT_TIMER, EV_ADD, 0, 0, B);
    sleep_ms(QUIET);
    tap_ok(one(kq, &e, 7, EVFILT_TIMER, B) && e.data >= 1 && e.data < 10000,
           "timer again: a period of 0 is one of 1 ms");
    change(kq, 7, EVFILT_TIMER, EV_DELETE, 0, 0, NULL);
    change(kq, 7, EVFILT_TIMER, EV_ADD | EV_DISPATCH, 0, 5, A);
    tap_ok(one(kq, &e, 7, EVFILT_TIMER, A), "timer again: EV_DISPATCH");
    tap_ok(quiet(kq), "timer again: disabled");
    change(kq, 7, EVFILT_TIMER, EV_ENABLE, 0, 5, A);
    tap_ok(one(kq, &e, 7, EVFILT_TIMER, A), "timer again: enabled");
    tap_ok(change(kq, 6, EVFILT_TIMER, EV_ADD, 0, -1, A) == EINVAL &&
               change(kq, 6, EVFILT_TIMER, EV_DELETE, 0, 0, NULL) == ENOENT,
           "timer again: there is no time before now");
    close(kq);
}

/* "EVFILT_USER: is not associated with any kernel mechanism but is triggered by user level code.
 * The lower 24 bits of the fflags may be manipulated using NOTE_FFNOP, NOTE_FFAND, NOTE_FFOR,
 * NOTE_FFCOPY." */
static void test_user(void)
{
    int kq = new_queue();
    struct kevent e;

    change(kq, 1, EVFILT_USER, EV_ADD | EV_CLEAR, 0, 0, A);
    tap_ok(quiet(kq), "user event: not triggered");
    change(kq, 1, EVFILT_USER, 0, NOTE_FFCOPY | 0xff00, 0, A);
    change(kq, 1, EVFILT_USER, 0, NOTE_FFOR | 0x00ff, 0, A);
    change(kq, 1, EVFILT_USER, 0, NOTE_FFAND | 0x0ff0, 0, A);
    change(kq, 1, EVFILT_USER, 0, NOTE_FFNOP | 0xffff, 0, A);
    tap_ok(quiet(kq), "user event: still not triggered");
    for (int i = 0; i < 3; i++)
        change(kq, 1, EVFILT_USER, 0, NOTE_TRIGGER, 42, B);
    tap_ok(one(kq, &e, 1, EVFILT_USER, B) && e.fflags == 0x0ff0 && e.data == 42,
           "user event: fflags, data and udata as they were set");
    tap_ok(quiet(kq), "user event: EV_CLEAR, three triggers are one event");
    change(kq, 1, EVFILT_USER, 0, NOTE_FFNOP, 0, A);
    tap_ok(quiet(kq), "user event: EV_CLEAR, changed and not triggered");
    change(kq, 1, EVFILT_USER, EV_DISABLE, 0, 0, A);
    change(kq, 1, EVFILT_USER, 0, NOTE_TRIGGER, 0, A);
    tap_ok(quiet(kq), "user event: disabled");
    change(kq, 1, EVFILT_USER, EV_ENABLE, 0, 0, A);
    tap_ok(one(kq, &e, 1, EVFILT_USER, A) && quiet(kq), "user event: enabled");

    change(kq, 2, EVFILT_USER, EV_ADD, 0, 0, A);
    change(kq, 2, EVFILT_USER, 0, NOTE_TRIGGER, 0, A);
    tap_ok(one(kq, &e, 2, EVFILT_USER, A) && one(kq, &e, 2, EVFILT_USER, A),
           "user event: without EV_CLEAR it stays");
    tap_ok(change(kq, 2, EVFILT_USER, EV_DELETE, 0, 0, NULL) == 0 && quiet(kq),
           "user event: deleted");
    change(kq, 1, EVFILT_USER, EV_DELETE, 0, 0, A);
    change(kq, 4, EVFILT_USER, EV_ADD | EV_CLEAR, NOTE_TRIGGER, 0, A);
    tap_ok(one(kq, &e, 4, EVFILT_USER, A) && e.fflags == 0, "user event: a new one has no fflags");
    change(kq, 3, EVFILT_USER, EV_ADD | EV_ONESHOT, NOTE_TRIGGER, 0, B);
    tap_ok(one(kq, &e, 3, EVFILT_USER, B) && quiet(kq) &&
               change(kq, 3, EVFILT_USER, EV_DELETE, 0, 0, NULL) == ENOENT,
           "user event: EV_ONESHOT, triggered as it is added");
    close(kq);
}

/* "EVFILT_SIGNAL: The filter will record all attempts to deliver a signal to a process, even if the
 * signal has been marked as SIG_IGN. data returns the number of times the signal has occurred since
 * the last call to kevent(). This filter automatically sets the EV_CLEAR flag." */
static void test_signal(void)
{
    int kq = new_queue();
    struct kevent e;

    need(signal(SIGUSR1, SIG_IGN) == SIG_ERR ? -1 : 0, "signal");
    tap_ok(change(kq, SIGUSR1, EVFILT_SIGNAL, EV_ADD, 0, 0, A) == 0, "signal: EV_ADD");
    tap_ok(quiet(kq), "signal: none yet");
    for (int i = 0; i < 2; i++) {
        need(kill(getpid(), SIGUSR1), "kill");
        tap_ok(one(kq, &e, SIGUSR1, EVFILT_SIGNAL, A) && e.data == 1,
               "signal: one, though ignored");
        tap_ok(e.flags & EV_CLEAR && quiet(kq), "signal: told once");
    }
    change(kq, SIGUSR1, EVFILT_SIGNAL, EV_DISABLE, 0, 0, A);
    need(kill(getpid(), SIGUSR1), "kill");
    tap_ok(quiet(kq), "signal: disabled");
    change(kq, SIGUSR1, EVFILT_SIGNAL, EV_ENABLE, 0, 0, A);
    tap_ok(one(kq, &e, SIGUSR1, EVFILT_SIGNAL, A), "signal: enabled");
    tap_ok(change(kq, SIGUSR1, EVFILT_SIGNAL, EV_DELETE, 0, 0, A) == 0, "signal: EV_DELETE");
    need(kill(getpid(), SIGUSR1), "kill");
    tap_ok(quiet(kq) && change(kq, SIGUSR1, EVFILT_SIGNAL, EV_DELETE, 0, 0, A) == ENOENT,
           "signal: deleted");
    close(kq);
}

/* "Calling close() on a file descriptor will remove any kevents that reference the descriptor." */
static void test_close(void)
{
    int kq = new_queue(), p[2], q[2];
    struct kevent e;

    need(pipe(p), "pipe");
    put(p[1], 1);
    change(kq, p[0], EVFILT_READ, EV_ADD, 0, 0, A);
    change(kq, p[1], EVFILT_WRITE, EV_ADD, 0, 0, A);
    close2(p);
    tap_ok(quiet(kq), "close: both events are gone");
    int error = change(kq, p[0], EVFILT_READ, EV_DELETE, 0, 0, NULL);
    tap_ok(error == EBADF, "close: nothing to delete: %s", strerror(error));
    tap_ok(change(kq, p[0], EVFILT_READ, EV_ENABLE, 0, 0, A) == EBADF, "close: nothing to enable");

    need(pipe(q), "pipe");
    put(q[1], 1);
    change(kq, q[0], EVFILT_READ, EV_ADD | EV_DISPATCH, 0, 0, B);
    tap_ok(one(kq, &e, q[0], EVFILT_READ, B), "close: the next of that number");
    close2(q);
    close(kq);
}

/* The same sentence, when the number is given out again: nothing of its former owner is left. */
static void test_reuse(void)
{
    static const struct {
        int before; /* flags of the former owner */
        int retrieve;
    } cases[] = {{EV_CLEAR, 1}, {EV_CLEAR, 0},    {EV_ONESHOT, 1}, {EV_ONESHOT, 0},
                 {0, 1},        {EV_DISPATCH, 1}, {EV_DISABLE, 0}};
    int kq = new_queue(), p[2], number;
    struct kevent e;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        need(pipe(p), "pipe");
        put(p[1], 1);
        number = p[0];
        change(kq, number, EVFILT_READ, EV_ADD | cases[i].before, 0, 0, A);
        if (cases[i].retrieve)
            one(kq, &e, number, EVFILT_READ, A);
        close2(p);
        need(pipe(p), "pipe"); /* the lowest free number: the same */
        put(p[1], 2);
        tap_ok(p[0] == number && quiet(kq), "reuse %zu: not registered", i);
        tap_ok(change(kq, number, EVFILT_READ, i % 2 ? EV_ENABLE : EV_DELETE, 0, 0, A) == ENOENT,
               "reuse %zu: not there", i);
        tap_ok(change(kq, number, EVFILT_READ, EV_ADD, 0, 0, B) == 0, "reuse %zu: EV_ADD", i);
        tap_ok(one(kq, &e, number, EVFILT_READ, B) && e.data == 2 && !(e.flags & OLD_FLAGS) &&
                   one(kq, &e, number, EVFILT_READ, B),
               "reuse %zu: as if it were the first", i);
        close2(p);
        need(pipe(p), "pipe");
        put(p[1], 3);
        tap_ok(change(kq, number, EVFILT_READ, EV_ADD, 0, 0, A) == 0 &&
                   one(kq, &e, number, EVFILT_READ, A) && e.data == 3,
               "reuse %zu: EV_ADD at once", i);
        close2(p);
    }
    close(kq);
}

/* And once more, when a duplicate of the former owner is still open and has events. */
static void test_duplicate(void)
{
    int kq = new_queue(), p[2], q[2];
    struct kevent e;

    for (int again = 0; again <= 1; again++) {
        need(pipe(p), "pipe");
        int duplicate = dup(p[0]), number = p[0];
        need(duplicate, "dup");
        change(kq, number, EVFILT_READ, EV_ADD, 0, 0, A);
        close(p[0]);
        need(pipe(q), "pipe");
        int error = change(kq, number, EVFILT_READ, again ? EV_ADD : EV_DELETE, 0, 0, B);
        put(p[1], 1);
        tap_ok(q[0] == number && error == (again ? 0 : ENOENT) &&
                   events_within(kq, &e, 1, QUIET) == 0,
               "duplicate: nothing of the former owner, %s", again ? "EV_ADD" : "EV_DELETE");
        put(q[1], 2);
        if (again)
            tap_ok(one(kq, &e, number, EVFILT_READ, B) && e.data == 2, "duplicate: the new owner");
        close(duplicate);
        close(p[1]);
        close2(q);
    }
    close(kq);
}

/* "There may only be one unique kevent per kqueue", and one in each of two. */
static void test_two_queues(void)
{
    int kq = new_queue(), other = new_queue(), p[2], s[2];
    struct kevent e;

    need(pipe(p), "pipe");
    put(p[1], 1);
    change(kq, p[0], EVFILT_READ, EV_ADD | EV_ONESHOT, 0, 0, A);
    change(other, p[0], EVFILT_READ, EV_ADD, 0, 0, B);
    tap_ok(one(kq, &e, p[0], EVFILT_READ, A) && quiet(kq), "two queues: the first");
    close(kq);
    tap_ok(one(other, &e, p[0], EVFILT_READ, B), "two queues: the second");
    kq = new_queue();
    tap_ok(one(other, &e, p[0], EVFILT_READ, B) && quiet(kq), "two queues: and a third");
    /* A timer has a number of its own, whatever descriptor has it too. */
    change(other, p[0], EVFILT_TIMER, EV_ADD | EV_ONESHOT, NOTE_SECONDS, 1000, A);
    change(other, p[0], EVFILT_READ, EV_DELETE, 0, 0, NULL);
    tap_ok(quiet(other) && change(other, p[0], EVFILT_TIMER, EV_DELETE, 0, 0, NULL) == 0,
           "two queues: a timer with the number of a descriptor");
    close2(p);
    need(pipe(p), "pipe"); /* where a timer is a descriptor, one of these has its number now */
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, s), "socketpair");
    change(other, s[0], EVFILT_READ, EV_ADD, 0, 0, B);
    put(s[1], 1);
    tap_ok(one(other, &e, s[0], EVFILT_READ, B), "two queues: a descriptor after a timer");
    close2(s);
    close2(p);
    close(other);
    close(kq);
}

static int limit_of_descriptors(void)
{
    struct rlimit limit;

    need(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    limit.rlim_cur = limit.rlim_max < MANY + SPARE ? limit.rlim_max : MANY + SPARE;
    need(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
    return (int)limit.rlim_cur - SPARE;
}

/* Many idle descriptors: those that are ready are found, each with its own udata. */
static void test_many(void)
{
    static struct kevent c[MANY];
    static int fd[MANY], seen[MANY];
    struct kevent e[100];
    int kq = new_queue(), most = limit_of_descriptors(), n, wrong = 0, all = 0;

    most -= most % 2;
    for (int i = 0; i < most; i += 2)
        need(socketpair(AF_UNIX, SOCK_STREAM, 0, &fd[i]), "socketpair");
    for (int i = 0; i < most; i++)
        EV_SET(&c[i], (uintptr_t)fd[i], EVFILT_READ, EV_ADD | EV_CLEAR, 0, 0, &seen[i]);
    tap_ok(kevent(kq, c, most, NULL, 0, NULL) == 0 && quiet(kq), "many: %d, all idle", most);
    put(fd[most / 2], 1);
    tap_ok(one(kq, &e[0], fd[(most / 2) ^ 1], EVFILT_READ, &seen[(most / 2) ^ 1]),
           "many: one that is ready");
    for (int i = 0; i < most; i++)
        put(fd[i], 1);
    while ((n = events_within(kq, e, 100, QUIET)) > 0) {
        for (int i = 0; i < n; i++) {
            int *mark = e[i].udata;
            wrong += e[i].ident != (uintptr_t)fd[mark - seen];
            all += ++*mark == 1;
        }
    }
    for (int i = 0; i < most; i++)
        wrong += seen[i] != 1;
    tap_ok(all == most && wrong == 0, "many: all are ready, each once: %d, %d wrong", all, wrong);
    for (int i = 0; i < most; i++)
        close(fd[i]);
    tap_ok(quiet(kq), "many: all are closed");
    close(kq);
}

/* Where there is never room for all, those who can be written to have their part of it. */
static void test_shares(void)
{
    enum { PAIRS = 20, WAITS = 40, ROOM = 4 };
    int kq = new_queue(), s[2 * PAIRS][2], written = 0, read = 0;
    struct kevent e[ROOM];

    for (int i = 0; i < 2 * PAIRS; i++) {
        need(socketpair(AF_UNIX, SOCK_STREAM, 0, s[i]), "socketpair");
        change(kq, s[i][0], i < PAIRS ? EVFILT_READ : EVFILT_WRITE, EV_ADD, 0, 0, NULL);
        if (i < PAIRS)
            put(s[i][1], 1);
    }
    for (int i = 0; i < WAITS; i++)
        for (int n = events_within(kq, e, ROOM, PATIENCE); n > 0; n--) {
            written += e[n - 1].filter == EVFILT_WRITE;
            read += e[n - 1].filter == EVFILT_READ;
        }
    tap_ok(written >= WAITS && read >= WAITS, "shares: %d of writers, %d of readers", written,
           read);
    for (int i = 0; i < 2 * PAIRS; i++)
        close2(s[i]);
    close(kq);
}

/* "When nevents is zero, kevent() will return immediately even if there is a timeout specified."
 * "If the time limit expires, then kevent() returns 0." */
static void test_time_out(void)
{
    struct timespec long_time = {PATIENCE / 1000, 0}, no_time = {0, 0}, short_time = {0, 50000000};
    int kq = new_queue();
    struct kevent e;
    int64_t start = now_ms();

    tap_ok(kevent(kq, NULL, 0, NULL, 0, &long_time) == 0, "time-out: nevents is 0");
    tap_ok(kevent(kq, NULL, 0, &e, 1, &no_time) == 0, "time-out: of 0");
    tap_ok(now_ms() - start < PATIENCE / 2, "time-out: neither has waited");
    start = now_ms();
    tap_ok(kevent(kq, NULL, 0, &e, 1, &short_time) == 0 && now_ms() - start >= 49,
           "time-out: of 50 ms");
    change(kq, 1, EVFILT_TIMER, EV_ADD, 0, 5, A);
    start = now_ms();
    tap_ok(kevent(kq, NULL, 0, &e, 1, &long_time) == 1 && now_ms() - start < PATIENCE / 2,
           "time-out: an event comes before");
    close(kq);
}

static void on_alarm(int signum)
{
    (void)signum;
}

/* "EINTR: A signal was delivered before the timeout expired and before any events were placed on
 * the kqueue for return. All changes in the changelist have been applied." */
static void test_interrupted(void)
{
    struct sigaction action = {.sa_handler = on_alarm}, before;
    struct itimerval soon = {{0, 10000}, {0, 10000}}, never = {{0, 0}, {0, 0}};
    int kq = new_queue(), p[2];
    struct kevent c, e;

    need(pipe(p), "pipe");
    need(sigaction(SIGALRM, &action, &before), "sigaction");
    EV_SET(&c, (uintptr_t)p[0], EVFILT_READ, EV_ADD, 0, 0, A);
    need(setitimer(ITIMER_REAL, &soon, NULL), "setitimer");
    int n = kevent(kq, &c, 1, &e, 1, NULL), error = errno;
    need(setitimer(ITIMER_REAL, &never, NULL), "setitimer");
    need(sigaction(SIGALRM, &before, NULL), "sigaction");
    tap_ok(n == -1 && error == EINTR, "EINTR: a signal ends the wait: %d", n);
    put(p[1], 1);
    tap_ok(one(kq, &e, p[0], EVFILT_READ, A), "EINTR: the change was made");
    close2(p);
    close(kq);
}

static int open_descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 1000; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* What is in a queue goes with it; on Linux with the next kqueue(), so what one queue holds may
 * stay. */
static void test_leak(void)
{
    int before = open_descriptors(), p[2];

    need(pipe(p), "pipe");
    for (int i = 0; i < 50; i++) {
        int kq = new_queue();
        change(kq, p[0], EVFILT_READ, EV_ADD, 0, 0, A);
        change(kq, p[1], EVFILT_WRITE, EV_ADD | EV_DISABLE, 0, 0, A);
        change(kq, 1, EVFILT_TIMER, EV_ADD, NOTE_SECONDS, 1000, A);
        change(kq, 2, EVFILT_USER, EV_ADD, 0, 0, A);
        for (int j = 0; j < 20; j++) { /* these end on their own */
            struct kevent e;
            change(kq, 3 + j, EVFILT_USER, EV_ADD | EV_ONESHOT, NOTE_TRIGGER, 0, B);
            change(kq, 3 + j, EVFILT_TIMER, EV_ADD, NOTE_SECONDS, 1000, B);
            change(kq, 3 + j, EVFILT_TIMER, EV_DELETE, 0, 0, NULL);
            if (events_within(kq, &e, 1, PATIENCE) != 1 || e.udata == NULL)
                tap_ok(false, "leak: event %d of queue %d", j, i);
        }
        close(kq);
    }
    close2(p);
    int after = open_descriptors();
    tap_ok(after <= before + 3, "leak: %d descriptors, then %d", before, after);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    test_level();
    test_clear();
    test_two_filters();
    test_oneshot();
    test_dispatch();
    test_disable();
    test_errors();
    test_error_events();
    test_change_list();
    test_add_twice();
    test_receipt();
    test_half_close();
    test_reset();
    test_listen();
    test_write();
    test_shut_for_writing();
    test_other_descriptors();
    test_timer();
    test_timer_again();
    test_user();
    test_signal();
    test_close();
    test_reuse();
    test_duplicate();
    test_two_queues();
    test_many();
    test_shares();
    test_time_out();
    test_interrupted();
    test_leak();
    return tap_done();
}
