/*
 * serve_client.c: read a request, send its reply, do it again: HTTP on a socket whose calls block.
 */
#include "01-iterative/serve_client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "acknowledged.h"
#include "die.h"
#include "http_parse.h"
#include "refusal.h"
#include "reply.h"
#include "stop.h"
#include "unsent.h"

#define CHUNK          65536
#define LOOK_MS        10         /* between two looks whether the last reply has arrived */
#define LINGER_BYTES   (64 << 20) /* that are read and thrown away, at most */
#define UNREAD_SECONDS 1

struct session {
    int fd;
    const struct serve *serve;
    time_t deadline; /* of the step in hand */
    bool replied;    /* a reply went before, and may still be under way */
    size_t have;     /* bytes of requests read and not yet answered */
    char in[HTTP_HEAD_MAX];
};

static time_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail: the clock exists, t is ours */
    return t.tv_sec;
}

int serve_set_timeouts(int fd, int seconds)
{
    const struct timeval limit = {.tv_sec = seconds};

    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0)
        return 0;
    warn_errno("setsockopt SO_RCVTIMEO, SO_SNDTIMEO");
    serve_refusal(fd);
    return -1;
}

static void begin_step(struct session *c)
{
    int seconds = c->serve->options->timeout;

    c->deadline = now() + seconds;
    if (c->serve->watchdog == NULL || stopping)
        return;
    c->serve->watchdog((unsigned)seconds);
    /* The last step's alarm may have come while the disk was waited for. */
    stop_wait_again();
    if (stopping) /* the signal came in between, and watchdog(seconds) replaced its alarm */
        c->serve->watchdog(STOP_GRACE);
}

/*
 * Returns the length of the request head at the start of c->in, minus the status for a bad one, or
 * 0 when the client has closed, or was silent or slow for too long: then no reply is sent.
 */
static int read_request(struct session *c, struct request *req)
{
    begin_step(c);
    errno = 0; /* recv() of 0 bytes leaves it as it is */
    for (;;) {
        int used = http_parse(c->in, c->have, req);
        if (used != 0)
            return used;
        ssize_t n = recv(c->fd, c->in + c->have, sizeof c->in - c->have, 0);
        if (n < 0 && errno == EINTR)
            continue; /* if it was the signal to stop, the next recv() does not wait: stop.h */
        if (n <= 0 || now() > c->deadline)
            return 0;
        c->have += (size_t)n;
    }
}

/* Sends all of buf. A blocking send() returns a short count when a signal or the socket time-out
 * interrupts it. Returns 0, or -1: the client is gone or too slow. */
static int send_all(struct session *c, const char *buf, size_t len, int flags)
{
    begin_step(c);
    while (len > 0) {
        ssize_t n = send(c->fd, buf, len, flags);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || now() > c->deadline)
            return -1;
        buf += n;
        len -= (size_t)n;
    }
    return 0;
}

static int send_reply(struct session *c, const struct reply *r)
{
    char chunk[CHUNK];
    off_t sent = 0;
    ssize_t n;

    while ((n = reply_next(r, sent, chunk, sizeof chunk)) > 0) {
        if (send_all(c, chunk, (size_t)n, r->may_close ? FIN_FOLLOWS : 0) < 0)
            return -1;
        unsent_count(c->fd, sent, sent + n);
        sent += n;
    }
    return (int)n;
}

/*
 * The kernel answers bytes that come after close() with a reset, and a reset makes the client throw
 * away what it has not yet received of the last reply. So we shut the socket for sending, and read
 * and throw away what still comes, until the client has acknowledged all (RFC 9112 section 9.6):
 * for one step and LINGER_BYTES at most. No event tells of the acknowledgement, so we look every
 * LOOK_MS. `unread`: the client may be sending more, and gets a second to read our reply after it
 * has arrived. `may_close`: it has said that it sends no more, and the reply is short: no wait.
 */
static void linger(struct session *c, bool unread, bool may_close)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    char junk[4096];

    if (!unread && !may_close && all_acknowledged(c->fd))
        return;
    if (shutdown(c->fd, SHUT_WR) < 0 || (may_close && !unread))
        return;
    begin_step(c);
    for (long bytes = 0; bytes < LINGER_BYTES && now() <= c->deadline;) {
        ssize_t n = recv(c->fd, junk, sizeof junk, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return;
        bool arrived = n < 0 && all_acknowledged(c->fd);
        if (arrived && (!unread || stopping))
            return;
        if (arrived && c->deadline > now() + UNREAD_SECONDS)
            c->deadline = now() + UNREAD_SECONDS;
        if (n < 0 && poll(&p, 1, LOOK_MS) < 0 && errno != EINTR)
            return; /* without poll() this loop would spin */
        bytes += n > 0 ? n : 0;
    }
}

/* One request and its reply. Returns whether the connection goes on. */
static bool serve_request(struct session *c)
{
    struct request req;
    struct reply reply;
    int used = read_request(c, &req);

    /* The server ends it, not the client: the time is up, or recv() does not wait (EAGAIN). The
     * last reply may still be under way. */
    if (used == 0 && (errno == EAGAIN || now() >= c->deadline))
        linger(c, false, false);
    if (used == 0)
        return false;
    req.keep_alive = req.keep_alive && c->serve->keep_alive && !stopping;
    req.is_last = req.is_last && !c->replied;
    c->replied = true;
    if (used < 0)
        reply_error(&reply, &req, -used);
    else
        reply_plan(&reply, &req, c->serve->options->docroot_fd);
    if (c->serve->options->verbose)
        reply_log(&reply, &req);
    bool sent = send_reply(c, &reply) == 0;
    if (reply.fd >= 0)
        close(reply.fd);
    if (!sent)
        return false;
    if (used > 0) { /* what follows is the next request, if the client sends several at once */
        c->have -= (size_t)used;
        memmove(c->in, c->in + used, c->have);
    }
    if (!reply.keep_alive)
        linger(c, c->have > 0 || req.has_body, reply.may_close);
    return reply.keep_alive;
}

void serve_client(int fd, const struct serve *s)
{
    struct session c = {.fd = fd, .serve = s};

    while (serve_request(&c))
        continue;
}
