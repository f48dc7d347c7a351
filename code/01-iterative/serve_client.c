/*
 * serve_client.c: read a request, send its reply, do it again: HTTP on a socket whose calls block.
 */
#include "01-iterative/serve_client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "http_parse.h"
#include "reply.h"
#include "stop.h"

#define CHUNK         65536
#define DRAIN_SECONDS 1

struct client {
    int fd;
    const struct serve *serve;
    time_t deadline; /* of the step in hand */
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
    const struct timeval patience = {.tv_sec = seconds};

    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0)
        return -1;
    return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

/* region: step */
static void begin_step(struct client *c)
{
    int seconds = c->serve->options->timeout;

    c->deadline = now() + seconds;
    if (c->serve->watchdog == NULL || stopping)
        return;
    c->serve->watchdog((unsigned)seconds);
    if (stopping) /* the signal came in between, and its own alarm is gone */
        c->serve->watchdog(STOP_GRACE);
}
/* endregion: step */

/* region: read-request */
/*
 * Returns the length of the request head at the start of c->in, minus the status for a bad one, or
 * 0 when the client is gone, silent or crawling: then there is nobody to answer.
 */
static int read_request(struct client *c, struct request *req)
{
    begin_step(c);
    for (;;) {
        int used = http_parse(c->in, c->have, req);
        if (used != 0)
            return used;
        ssize_t n = recv(c->fd, c->in + c->have, sizeof c->in - c->have, 0);
        if (n < 0 && errno == EINTR)
            continue; /* if it was the signal to stop, the next recv() returns at once: stop.h */
        if (n <= 0 || now() > c->deadline)
            return 0;
        c->have += (size_t)n;
    }
}
/* endregion: read-request */

/* region: send-reply */
/* Sends all of buf or fails: send() on a blocking socket takes less when a signal or the time-out
 * strikes. */
static int send_all(struct client *c, const char *buf, size_t len)
{
    begin_step(c);
    while (len > 0) {
        ssize_t n = send(c->fd, buf, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || now() > c->deadline)
            return -1;
        buf += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Fills buf from the file and moves on in it. Returns the bytes read; 0 if the file has become
 * shorter. */
static size_t read_file(struct reply *r, char *buf, size_t len)
{
    ssize_t n;

    if (r->end - r->offset < (off_t)len)
        len = (size_t)(r->end - r->offset);
    do
        n = pread(r->fd, buf, len, r->offset);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return 0;
    r->offset += n;
    return (size_t)n;
}

/* Head and the first of the body share a buffer, so that they share a packet. */
static int send_reply(struct client *c, struct reply *r)
{
    char buf[CHUNK];
    size_t len = r->head_len;

    memcpy(buf, r->head, len);
    while (r->fd >= 0 && r->offset < r->end) {
        size_t n = read_file(r, buf + len, sizeof buf - len);
        if (n == 0) /* the promised length cannot be kept: only the end of the connection says so */
            return -1;
        if (send_all(c, buf, len + n) < 0)
            return -1;
        len = 0;
    }
    return len > 0 ? send_all(c, buf, len) : 0;
}
/* endregion: send-reply */

/* region: drain */
/*
 * To close a socket that has bytes unread is to reset the connection, and a reset overtakes the
 * reply on its way. So what still comes is read and thrown away, for a bounded time.
 */
static void drain(int fd)
{
    char junk[4096];
    time_t deadline = now() + DRAIN_SECONDS;

    if (shutdown(fd, SHUT_WR) < 0 || serve_set_timeouts(fd, DRAIN_SECONDS) < 0)
        return;
    while (recv(fd, junk, sizeof junk, 0) > 0 && now() <= deadline)
        continue;
}
/* endregion: drain */

/* region: serve-request */
/* One request and its reply. Returns whether the connection goes on. */
static bool serve_request(struct client *c)
{
    struct request req;
    struct reply reply;
    int used = read_request(c, &req);

    if (used == 0)
        return false;
    req.keep_alive = req.keep_alive && c->serve->keep_alive && !stopping;
    if (used < 0)
        reply_error(&reply, NULL, -used);
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
    if (!reply.keep_alive && (c->have > 0 || req.has_body))
        drain(c->fd);
    return reply.keep_alive;
}

void serve_client(int fd, const struct serve *s)
{
    struct client c = {.fd = fd, .serve = s};

    while (serve_request(&c))
        continue;
}
/* endregion: serve-request */
