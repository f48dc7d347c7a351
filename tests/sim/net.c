/*
 * net.c: TCP between the server and the simulated clients. What the server sends is in a ring until
 * the client has read it: `taken` <= `acked` <= `sent`. Between the two first is what the client's
 * kernel holds, between the two last what the server's does. What a reset destroys is destroyed
 * here, too.
 */
#include "sim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "05b-nonblocking/conn.h"
#include "stop.h"

#define FIRST_WINDOW (10 * 1460)
#define HELD_FOR     (200 * MS) /* what MSG_MORE keeps back, at most */

struct sock socks[SOCKETS];
int listen_fd = -1;

static struct sock *queue[SOCKETS];
static int queued;
static bool listener_shut;

static long long under_way(const struct sock *s)
{
    return s->sent - s->acked;
}

bool can_read(const struct sock *s)
{
    return s->in_len > 0 || s->in_fin || s->in_rst;
}

bool can_write(const struct sock *s)
{
    return s->in_rst || s->fin || (size_t)under_way(s) <= s->room * 2 / 3;
}

bool listener_ready(void)
{
    return queued > 0 || listener_shut;
}

static void tell_server(struct sock *s)
{
    if (s->accepted && !s->closed)
        tell(s->fd);
}

/* ---- what is on its way arrives */

static void free_if_over(struct sock *s)
{
    if (s->closed && s->peer == NULL)
        s->used = false;
}

static void lose_what_is_under_way(struct sock *s)
{
    if (under_way(s) > 0 && s->peer != NULL)
        TRACE("%s: a reset destroys %lld bytes", peer_name(s->peer), under_way(s));
    s->sent = s->acked;
    s->held = 0;
}

static void deliver(struct sock *s, long long most)
{
    long long n = under_way(s) - s->held, room = (long long)s->window - (s->acked - s->taken);

    if (s->frozen)
        return;
    if (s->peer == NULL && (n > 0 || (s->closed && s->fin))) { /* who has closed answers a reset */
        if (n > 0 && !s->in_rst) {
            s->in_rst = true;
            tell_server(s);
        }
        lose_what_is_under_way(s);
        return;
    }
    n = n < room ? n : room;
    n = n < most ? n : most;
    if (n > 0) {
        s->acked += n;
        s->moved_at = w.now;
        if (s->no_space && can_write(s)) {
            s->no_space = false;
            tell_server(s);
        }
    }
    bool ended = s->fin && under_way(s) == 0 && !s->fin_acked;
    s->fin_acked = s->fin && under_way(s) == 0;
    if ((n > 0 || ended) && s->peer != NULL)
        peer_hears(s->peer);
    if (s->held > 0)
        s->deliver_at = w.now + HELD_FOR;
}

static void deliver_later(struct sock *s)
{
    long long at = w.now + (one_in(3) ? 0 : pick(15) * MS);

    if (at < s->deliver_at || s->deliver_at <= w.now)
        s->deliver_at = at;
    due(s->deliver_at);
}

void sockets_act(void)
{
    for (struct sock *s = socks; s < socks + SOCKETS; s++) {
        if (!s->used || s->deliver_at == NEVER)
            continue;
        if (s->deliver_at <= w.now) {
            s->deliver_at = NEVER;
            if (s->held > 0 && w.now - s->moved_at >= HELD_FOR)
                s->held = 0;
            deliver(s, NEVER);
        }
        due(s->deliver_at);
    }
}

/* ---- the client's end */

struct sock *connect_to_server(struct peer *p)
{
    struct sock *s = socks;

    while (s < socks + SOCKETS && s->used)
        s++;
    if (s == socks + SOCKETS || queued == SOCKETS || listener_shut || listen_fd < 0)
        return NULL;
    memset(s, 0, offsetof(struct sock, in));
    s->in_len = 0;
    memset(&s->in_len, 0, offsetof(struct sock, out) - offsetof(struct sock, in_len));
    memset(&s->sent, 0, sizeof *s - offsetof(struct sock, sent));
    s->used = true;
    s->fd = -1;
    s->peer = p;
    s->in_room = IN_MAX;
    s->deliver_at = NEVER;
    s->moved_at = w.now;
    queue[queued++] = s;
    tell(listen_fd);
    return s;
}

bool is_queued(const struct sock *s)
{
    return !s->accepted && !s->closed;
}

size_t client_sends(struct sock *s, const unsigned char *bytes, size_t len)
{
    if (s->closed) { /* answered by a reset, which does not overtake what has left by then */
        deliver(s, FIRST_WINDOW);
        lose_what_is_under_way(s);
        s->rst = true;
        return len;
    }
    size_t n = s->in_room - s->in_len;
    n = n < len ? n : len;
    if (n == 0)
        return 0;
    memcpy(s->in + s->in_len, bytes, n);
    s->in_len += n;
    s->in_at = w.now;
    s->moved_at = w.now;
    tell_server(s);
    return n;
}

void client_fin(struct sock *s)
{
    s->in_fin = true;
    tell_server(s);
}

void client_reset(struct sock *s)
{
    s->in_rst = true;
    s->in_len = 0;
    s->peer = NULL;
    lose_what_is_under_way(s);
    tell_server(s);
    free_if_over(s);
}

void client_closes(struct sock *s)
{
    if (s->acked > s->taken) { /* with bytes unread */
        client_reset(s);
        return;
    }
    s->in_fin = true;
    s->peer = NULL;
    tell_server(s);
    deliver(s, NEVER);
    free_if_over(s);
}

size_t client_reads(struct sock *s, size_t most,
                    void (*take)(struct peer *, const unsigned char *, size_t))
{
    size_t n = (size_t)(s->acked - s->taken), all;

    all = n = n < most ? n : most;
    while (n > 0) {
        size_t at = (size_t)s->taken % OUT_MAX, part = OUT_MAX - at < n ? OUT_MAX - at : n;
        s->taken += (long long)part;
        n -= part;
        take(s->peer, s->out + at, part);
    }
    if (all > 0 && under_way(s) > 0)
        deliver_later(s);
    return all;
}

bool client_sees_end(const struct sock *s)
{
    return s->taken == s->acked && (s->fin_acked || s->rst);
}

/* ---- the server's end */

static struct sock *get_sock(int fd, const char *call)
{
    struct fd *f = get_fd(fd, call);

    if (f->kind != A_SOCKET)
        fault("%s of descriptor %d, which is no connection", call, fd);
    return f->sock;
}

/* An error that this call may have, and that ends the connection. */
static bool breaks(struct sock *s, const char *call)
{
    static const int errors[] = {ETIMEDOUT, ENETDOWN, ENOBUFS, EHOSTUNREACH};

    if (!fails(w.calls_fail))
        return false;
    errno = errors[pick(4)];
    s->excuse = "an error of a call";
    TRACE("%s(%d) fails: %s", call, s->fd, strerror(errno));
    return true;
}

WRAP(int, socket, int family, int type, int protocol)
{
    (void)family, (void)type, (void)protocol;
    return listen_fd = new_fd(A_LISTENER);
}

WRAP(int, bind, int fd, const struct sockaddr *address, socklen_t len)
{
    (void)address, (void)len;
    get_fd(fd, "bind()");
    return 0;
}

WRAP(int, listen, int fd, int backlog)
{
    (void)backlog;
    get_fd(fd, "listen()");
    return 0;
}

WRAP(int, getsockname, int fd, struct sockaddr *address, socklen_t *len)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(8080)};

    get_fd(fd, "getsockname()");
    memcpy(address, &a, sizeof a);
    *len = sizeof a;
    return 0;
}

WRAP(int, setsockopt, int fd, int level, int option, const void *value, socklen_t len)
{
    struct fd *f = get_fd(fd, "setsockopt()");
    int number;

    memcpy(&number, value, len < sizeof number ? len : sizeof number);
    if (f->kind == A_SOCKET && level == IPPROTO_TCP && option == TCP_CORK) {
        f->sock->corked = number != 0;
        if (number == 0) {
            f->sock->held = 0;
            deliver_later(f->sock);
        }
    }
    return 0;
}

static int accept_error(void)
{
    static const int errors[] = {ECONNABORTED, EINTR, EPROTO, ENOBUFS, ENOMEM, ENFILE, EMFILE};

    if (listener_shut)
        return EINVAL;
    if (fails(200))
        return errors[pick(3)];
    if (fails(w.calls_fail))
        return errors[3 + pick(4)];
    return queued == 0 ? EAGAIN : 0;
}

/* The listening socket of 05b-nonblocking blocks. */
static void wait_for_client(void)
{
    wait_begins();
    while (queued == 0 && !listener_shut)
        if (!pass_time(NEVER) || signal_due())
            return;
}

WRAP(int, accept4, int fd, struct sockaddr *address, socklen_t *len, int flags)
{
    (void)address, (void)len, (void)flags;
    get_fd(fd, "accept4()");
    step();
    if (strcmp(w.server, "05b-nonblocking") == 0)
        wait_for_client();
    errno = accept_error();
    int own = errno == 0 ? new_fd(A_SOCKET) : -1;
    if (own < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            lacks_room();
            w.shortage = w.steps;
        }
        TRACE("accept4() = -1 %s", strerror(errno));
        return -1;
    }
    struct sock *s = queue[0];
    memmove(queue, queue + 1, (size_t)--queued * sizeof *queue);
    fds[own].sock = s;
    s->fd = own;
    s->accepted = true;
    s->moved_at = w.now;
    TRACE("accept4() = %d, %s", own, s->peer != NULL ? peer_name(s->peer) : "gone");
    if (s->peer != NULL)
        peer_was_accepted(s->peer);
    if (sockets_held() >= clients_most())
        lacks_room();
    return own;
}

int sockets_held(void)
{
    int n = 0;

    for (const struct sock *s = socks; s < socks + SOCKETS; s++)
        n += s->used && s->accepted && !s->closed;
    return n;
}

WRAP(ssize_t, recv, int fd, void *bytes, size_t len, int flags)
{
    struct sock *s = get_sock(fd, "recv()");

    step();
    if (s->in_rst) {
        errno = ECONNRESET;
        return -1;
    }
    if (breaks(s, "recv"))
        return -1;
    if (s->in_len == 0 && !s->in_fin) {
        s->received = GAVE_EAGAIN;
        errno = EAGAIN;
        return -1;
    }
    size_t n = s->in_len < len ? s->in_len : len;
    s->received = n < len ? GAVE_ALL_THERE_WAS : GAVE;
    memcpy(bytes, s->in, n);
    if ((flags & MSG_PEEK) == 0) {
        memmove(s->in, s->in + n, s->in_len - n);
        s->in_len -= n;
        s->in_taken += (long long)n;
    }
    TRACE("recv(%d) = %zu of %zu%s", fd, n, len, (flags & MSG_PEEK) != 0 ? ", a look" : "");
    return (ssize_t)n;
}

/* How many of `len` bytes the socket takes now; 0 with errno: none. */
static size_t takes(struct sock *s, size_t len, const char *call)
{
    step();
    if (s->fin)
        fault("%s to descriptor %d, which is shut for sending", call, s->fd);
    errno = s->in_rst ? EPIPE : 0;
    if (s->in_rst || breaks(s, call))
        return 0;
    size_t used = (size_t)under_way(s), in_ring = OUT_MAX - (size_t)(s->sent - s->taken);
    size_t n = used < s->room ? s->room - used : 0;
    n = n < in_ring ? n : in_ring;
    n = n < len ? n : len;
    if (n == 0 && len > 0) {
        s->wrote = GAVE_EAGAIN;
        s->no_space = true;
        s->blocked_at = s->blocked_at > 0 ? s->blocked_at : w.now;
        errno = EAGAIN;
        return 0;
    }
    s->wrote = GAVE;
    s->blocked_at = 0;
    return n > 1 && one_in(10) ? 1 + pick((unsigned)n) : n;
}

static void put(struct sock *s, const unsigned char *bytes, size_t len)
{
    while (len > 0) {
        size_t at = (size_t)s->sent % OUT_MAX, part = OUT_MAX - at < len ? OUT_MAX - at : len;
        memcpy(s->out + at, bytes, part);
        s->sent += (long long)part;
        bytes += part;
        len -= part;
    }
}

static void sent(struct sock *s, size_t n, bool more)
{
    s->held = more || s->corked ? (s->held + (long long)n) % 1460 : 0; /* what fills no packet */
    deliver_later(s);
}

WRAP(ssize_t, send, int fd, const void *bytes, size_t len, int flags)
{
    struct sock *s = get_sock(fd, "send()");
    size_t n = takes(s, len, "send");

    put(s, bytes, n);
    TRACE("send(%d, %zu%s) = %zd%s", fd, len, (flags & MSG_MORE) != 0 ? ", MSG_MORE" : "",
          n > 0 ? (ssize_t)n : -1, n > 0 ? "" : strerror(errno));
    if (n == 0 && len > 0)
        return -1;
    sent(s, n, (flags & MSG_MORE) != 0);
    return (ssize_t)n;
}

static ssize_t send_parts(int fd, const struct iovec *parts, size_t count, bool more)
{
    struct sock *s = get_sock(fd, "sendmsg()");
    size_t len = 0;

    for (size_t i = 0; i < count; i++)
        len += parts[i].iov_len;
    size_t n = takes(s, len, "sendmsg"), left = n;
    for (size_t i = 0; i < count && left > 0; i++) {
        size_t part = parts[i].iov_len < left ? parts[i].iov_len : left;
        put(s, parts[i].iov_base, part);
        left -= part;
    }
    TRACE("sendmsg(%d, %zu) = %zd", fd, len, n > 0 ? (ssize_t)n : -1);
    if (n == 0 && len > 0)
        return -1;
    sent(s, n, more);
    return (ssize_t)n;
}

WRAP(ssize_t, sendmsg, int fd, const struct msghdr *message, int flags)
{
    return send_parts(fd, message->msg_iov, message->msg_iovlen, (flags & MSG_MORE) != 0);
}

WRAP(ssize_t, writev, int fd, const struct iovec *parts, int count)
{
    return send_parts(fd, parts, (size_t)count, false);
}

WRAP(ssize_t, sendfile64, int fd, int in_fd, off_t *offset, size_t len)
{
    struct sock *s = get_sock(fd, "sendfile()");
    struct fd *f = get_fd(in_fd, "sendfile()");
    off_t left = (off_t)file_sizes[f->file] - *offset;

    if (f->kind != A_FILE)
        fault("sendfile() from descriptor %d, which is no file", in_fd);
    size_t n = takes(s, (off_t)len < left ? len : (size_t)left, "sendfile");
    put(s, file_bytes(f->file) + *offset, n);
    TRACE("sendfile(%d, %d, %lld, %zu) = %zd", fd, in_fd, (long long)*offset, len,
          n > 0 || left == 0 ? (ssize_t)n : -1);
    if (n == 0 && left > 0)
        return -1;
    *offset += (off_t)n;
    sent(s, n, false);
    return (ssize_t)n;
}

void shut_listener(void)
{
    listener_shut = true;
    for (int i = 0; i < queued; i++) { /* the kernel resets those */
        queue[i]->closed = queue[i]->rst = true;
        queue[i]->excuse = "stopping";
        free_if_over(queue[i]);
    }
    queued = 0;
    tell(listen_fd);
}

WRAP(int, shutdown, int fd, int how)
{
    struct fd *f = get_fd(fd, "shutdown()");

    (void)how;
    step();
    if (f->kind == A_LISTENER) {
        shut_listener();
        return 0;
    }
    TRACE("shutdown(%d)", fd);
    if (f->sock->in_rst) {
        errno = ENOTCONN;
        return -1;
    }
    f->sock->fin = true; /* after a whole reply, or none */
    f->sock->no_more = stopping || (f->sock->peer != NULL && peer_is_late(f->sock->peer));
    f->sock->held = 0;
    deliver_later(f->sock);
    return 0;
}

WRAP(int, ioctl, int fd, unsigned long request, int *bytes)
{
    struct sock *s = get_sock(fd, "ioctl()");

    (void)request;
    *bytes = s->in_rst ? 0 : (int)under_way(s) + (s->fin && !s->fin_acked);
    return 0;
}

/* Who had unread what the client has sent resets the connection; else what is sent will arrive. */
static void close_socket(struct sock *s)
{
    s->closed = true;
    if (s->in_len > 0 && !s->in_rst) {
        lose_what_is_under_way(s);
        s->rst = true;
    } else if (s->in_rst) {
        s->rst = true;
    } else {
        s->fin = true;
        s->held = 0;
    }
    s->deliver_at = NEVER;
    deliver_later(s);
    free_if_over(s);
}

WRAP(int, close, int fd)
{
    struct fd *f = get_fd(fd, "close()");

    step();
    TRACE("close(%d)", fd);
    if (f->kind == A_SOCKET)
        close_socket(f->sock);
    if (f->kind == A_LISTENER)
        shut_listener();
    f->kind = UNUSED;
    return 0;
}

/* ---- what is promised of connections */

static bool is_blocked(const struct sock *s, long long for_us)
{
    return s->blocked_at > 0 && !can_write(s) && w.now - s->blocked_at >= for_us &&
           (job_is_for == NULL || !job_is_for(s->fd));
}

/* A client that holds a place, and reads so slowly that it should have left for another. */
struct sock *who_could_leave(void)
{
    for (struct sock *s = socks; s < socks + SOCKETS; s++)
        if (s->used && s->accepted && !s->closed && is_blocked(s, 5 * S / 2) &&
            s->sent < UNSENT_PROOF && !s->fin)
            return s;
    return NULL;
}

/* want.h */
static void judge_want(const struct conn *c, const struct sock *s, enum want want)
{
    bool short_count = c->ops != NULL && c->ops->short_count_is_all;
    bool all = s->received == GAVE_EAGAIN || (short_count && s->received == GAVE_ALL_THERE_WAS);

    if (want == WANT_READ && !all && !conn_waits_for_disk(c))
        fault("conn_handle(%d) says WANT_READ, and recv() has not said EAGAIN", s->fd);
    if (want == WANT_WRITE && s->wrote != GAVE_EAGAIN)
        fault("conn_handle(%d) says WANT_WRITE, and send() has not said EAGAIN", s->fd);
}

enum want __real_conn_handle(struct conn *c);
WRAP(enum want, conn_handle, struct conn *c)
{
    struct sock *s = get_sock(c->fd, "conn_handle()");
    long before = w.steps;

    s->received = s->wrote = NO_CALL;
    w.served = s;
    enum want want = __real_conn_handle(c);
    w.served = NULL;
    if (want != WANT_CLOSE && !s->in_rst && s->excuse == NULL)
        judge_want(c, s, want);
    if (w.steps - before > 2000)
        fault("conn_handle(%d) made %ld calls in one turn", c->fd, w.steps - before);
    wait_brought(s->received == GAVE || s->received == GAVE_ALL_THERE_WAS || s->wrote == GAVE);
    return want;
}

void __real_conn_end(struct conn *c);
WRAP(void, conn_end, struct conn *c)
{
    struct sock *s = get_sock(c->fd, "conn_end()");
    /* One that has taken nothing for a second may have begun to read since the last wait: the server
     * cannot know of it yet. */
    bool was_slow = s->blocked_at > 0 && w.now - s->blocked_at >= FULL_STEP_MS * MS;
    bool may_leave = c->state != SENDING || is_blocked(s, 0) || was_slow;

    TRACE("conn_end(%d), %s", c->fd,
          c->state == READING     ? "reading"
          : c->state == LINGERING ? "lingering"
                                  : "sending");
    if (job_is_for != NULL && job_is_for(c->fd))
        fault("conn_end(%d), and a thread works for that connection", c->fd);
    if (s->excuse == NULL && w.room_lacked && may_leave)
        s->excuse = "room";
    s->no_more = s->no_more || (stopping && c->state != SENDING);
    bool good = s->peer != NULL && peer_is_good(s->peer) && s->excuse == NULL && !s->in_rst;
    if (good && !stopping && c->state == READING && s->in_len > 0 &&
        s->in_at / MS <= c->deadline - 1)
        fault("conn_end(%d), and %zu bytes that came in time are not read", c->fd, s->in_len);
    s->no_more = s->no_more || (good && c->state != SENDING && peer_is_late(s->peer));
    if (good && c->state == SENDING)
        fault("conn_end(%d) in the middle of a reply; its client, %s, was in time", c->fd,
              peer_name(s->peer));
    __real_conn_end(c);
}

void __real_serve_refusal(int fd);
WRAP(void, serve_refusal, int fd)
{
    struct sock *s = get_sock(fd, "serve_refusal()"), *slow = who_could_leave();

    if (slow != NULL && w.room_lacked && w.shortage != w.steps && s->excuse == NULL)
        fault("descriptor %d is refused, while that of %s could leave: it has not read for %lld ms",
              fd, slow->peer != NULL ? peer_name(slow->peer) : "?",
              (w.now - slow->blocked_at) / MS);
    s->excuse = "room";
    __real_serve_refusal(fd);
}
