/*
 * conn.c: a connection as a state machine.
 *
 *             +-- more requests --+
 *             v                   |
 *     reading a request -> sending its reply -> lingering -> closed
 *
 * A blocking server keeps the state of a connection where it sleeps: in the stack and the program
 * counter of its process or thread. Here nobody sleeps, so what was in local variables is in struct
 * conn, and "where was I" is answered by which of its pointers is not NULL. An idle connection owns
 * no buffer: most connections are idle most of the time.
 */
#include "05b-nonblocking/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "05b-nonblocking/find_reply.h"
#include "05b-nonblocking/send_reply.h"
#include "acknowledged.h"
#include "http_parse.h"
#include "reply.h"
#include "stop.h"
#include "unsent.h"

/* What a connection may do before the others have their turn. */
/* region: budget */
#define BUDGET_REQUESTS 16
#define BUDGET_BYTES    (256 * 1024)
#define BUDGET_LINGERS  64 /* reads */
/* endregion: budget */

#define STEP_BYTES 65536 /* of a reply, for which the client has o->timeout seconds */
/* A connection that lingers has credit, of which a look at it takes LOOK_COST, and a turn full of
 * bytes that nobody reads takes 1. */
#define LOOK_MS       100 /* between two looks whether the last reply has arrived */
#define LOOK_COST     10
#define UNREAD_CREDIT 100 /* after it has, where the client still sends: a second, or 50 MiB */

long conn_turn_bytes = BUDGET_BYTES;
bool conn_short_count_is_all;
static bool waits_for_requests = true;

/* A sending has more than a kilobyte, and is needed for every reply: one is kept for the next. */
#define SPARE_ROOM 512
static struct sending *spare;

/* The request that is being read, of whichever connection is being handled. */
static struct {
    size_t have;
    char bytes[HTTP_HEAD_MAX];
} in;

static void begin_step(struct conn *c)
{
    c->deadline = conn_now() + c->options->timeout * 1000LL;
}

void conn_adopt(struct conn *c, int fd, const struct options *o)
{
    *c = (struct conn){.fd = fd, .options = o};
    begin_step(c);
}

int conn_init(struct conn *c, int fd, const struct options *o)
{
    int flags = fcntl(fd, F_GETFL);

    conn_adopt(c, fd, o);
    return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static void free_input(struct conn *c)
{
    if (c->out == NULL) /* else it is part of that */
        free(c->in);
}

/* region: input */
/* From the connection to the common buffer, and back. */
static void take_input(struct conn *c)
{
    /* solution: take-input */
    in.have = c->have;
    if (c->in != NULL)
        memcpy(in.bytes, c->in, c->have);
    free_input(c);
    c->in = NULL;
    c->have = 0;
    /* endsolution: take-input */
}

static int keep_input(struct conn *c)
{
    /* solution: keep-input */
    if (in.have == 0)
        return 0;
    c->in = c->out != NULL ? c->out->rest : malloc(in.have);
    if (c->in == NULL)
        return -1;
    memcpy(c->in, in.bytes, in.have);
    c->have = (unsigned short)in.have;
    return 0;
    /* endsolution: keep-input */
}
/* endregion: input */

static struct sending *new_sending(struct conn *c)
{
    size_t room = in.have > SPARE_ROOM ? in.have : SPARE_ROOM;
    struct sending *out = spare;

    if (out != NULL && out->room >= in.have)
        spare = NULL;
    else if ((out = malloc(sizeof *out + room)) != NULL)
        out->room = room;
    else
        return NULL;
    out->conn = c;
    out->head_sent = out->step = 0;
    out->held = NULL;
    out->found = out->has_body = out->corked = out->is_read = false;
    out->reply.fd = -1;
    return out;
}

/* `used` is what http_parse() returned, not 0. WANT_READ here means that the reply is there to be
 * sent. */
static enum want begin_reply(struct conn *c, struct request *req, int used)
{
    if (c->out == NULL && (c->out = new_sending(c)) == NULL)
        return WANT_CLOSE;
    struct sending *out = c->out;
    req->keep_alive = req->keep_alive && !stopping;
    if (used < 0)
        reply_error(&out->reply, req, -used);
    else if (!find_reply(out, req, c->options->docroot_fd))
        return WANT_DISK;
    out->found = true;
    out->begin = out->reply.offset;
    out->has_body = used > 0 && req->has_body;
    if (c->options->verbose)
        reply_log(&out->reply, req);
    if (used > 0) { /* what follows is the next request, if the client sends several at once */
        in.have -= (size_t)used;
        memmove(in.bytes, in.bytes + used, in.have);
    }
    begin_step(c);
    return WANT_READ;
}

static void end_reply(struct conn *c)
{
    if (c->out == NULL)
        return;
    send_end(c->out);
    if (spare == NULL)
        spare = c->out;
    else
        free(c->out);
    c->out = NULL;
}

/* region: linger */
/*
 * Whatever comes after close() is answered with a reset, and a reset takes along what has not been
 * delivered of the last reply. So the socket is shut for sending first, and what still comes is
 * read and thrown away until the peer has acknowledged all (RFC 9112 section 9.6), for o->timeout
 * seconds and so many turns' worth of bytes at most. Where more was announced the client is given
 * another second to look up from its sending. Of the acknowledgement no event tells: it is looked
 * for every LOOK_MS.
 */
static enum want look(struct conn *c)
{
    if (!all_acknowledged(c->fd))
        return WANT_READ;
    if (!c->unread || stopping)
        return WANT_CLOSE;
    c->credit = c->credit < UNREAD_CREDIT ? c->credit : UNREAD_CREDIT;
    return WANT_READ;
}

static enum want linger(struct conn *c)
{
    if (conn_now() >= c->deadline) {
        if (c->credit < LOOK_COST)
            return WANT_CLOSE;
        c->credit -= LOOK_COST;
        c->deadline = conn_now() + LOOK_MS;
    }
    for (int i = 0; i < BUDGET_LINGERS; i++) {
        ssize_t n = recv(c->fd, in.bytes, sizeof in.bytes, 0);
        if (n < 0 && errno == EAGAIN)
            return look(c);
        if (n == 0 || (n < 0 && errno != EINTR))
            return WANT_CLOSE;
    }
    return c->credit-- > 0 ? WANT_AGAIN : WANT_CLOSE;
}

/* `corked`: nothing of the end of the reply is sent before the FIN, and nothing acknowledged. */
static enum want begin_to_linger(struct conn *c, bool unread, bool corked)
{
    int credit = c->options->timeout * (1000 / LOOK_MS) * LOOK_COST;

    if ((!unread && !corked && all_acknowledged(c->fd)) || shutdown(c->fd, SHUT_WR) < 0)
        return WANT_CLOSE;
    c->lingering = true;
    c->unread = unread;
    c->credit = (unsigned short)(credit < USHRT_MAX ? credit : USHRT_MAX);
    c->deadline = conn_now() + LOOK_MS;
    in.have = 0; /* whose memory it was has been given back: take_input() */
    return WANT_AGAIN;
}
/* endregion: linger */

static const enum want want_after[] = {[SENT_BLOCKED] = WANT_WRITE,
                                       [SENT_BUDGET] = WANT_AGAIN,
                                       [SENT_DISK] = WANT_DISK,
                                       [SENT_FAILED] = WANT_CLOSE};

static void note_reader(struct conn *c)
{
    struct sending *out = c->out;

    if (!out->is_read && out->reply.offset - out->begin >= UNSENT_PROOF) {
        out->is_read = true;
        unsent_unlimited(c->fd);
    }
}

/* region: send-on */
/* Sends on. WANT_READ here means that the reply is out, and that it was not the last. */
static enum want send_on(struct conn *c, long *budget)
{
    /* solution: send-on */
    long before = *budget;
    enum sent sent = send_reply(c->fd, c->out, budget);

    note_reader(c);
    c->out->step += before - *budget;
    if (c->out->step >= STEP_BYTES) {
        c->out->step = 0;
        begin_step(c);
    }
    if (sent != SENT_ALL)
        return want_after[sent];

    bool last = !c->out->reply.keep_alive, unread = in.have > 0 || c->out->has_body;
    bool corked = c->out->corked;
    end_reply(c);
    begin_step(c);
    return last ? begin_to_linger(c, unread, corked) : WANT_READ;
    /* endsolution: send-on */
}
/* endregion: send-on */

/* region: go-on */
static enum want go_on(struct conn *c)
{
    /* solution: go-on */
    long budget = conn_turn_bytes;
    bool all = false;

    for (int requests = 0; requests < BUDGET_REQUESTS;) {
        struct request req;
        int used;

        if (c->out != NULL && c->out->found) {
            enum want want = send_on(c, &budget);
            if (want != WANT_READ)
                return want;
        } else if ((used = http_parse(in.bytes, in.have, &req)) != 0) {
            enum want want = begin_reply(c, &req, used);
            if (want != WANT_READ)
                return want;
            requests++;
        } else if (all) {
            return WANT_READ;
        } else {
            size_t room = sizeof in.bytes - in.have;
            ssize_t n = recv(c->fd, in.bytes + in.have, room, 0);
            if (n < 0 && errno == EAGAIN)
                return waits_for_requests ? WANT_READ : begin_to_linger(c, false, false);
            if (n == 0 || (n < 0 && errno != EINTR))
                return WANT_CLOSE;
            in.have += n > 0 ? (size_t)n : 0;
            all = conn_short_count_is_all && !c->no_more && waits_for_requests && n > 0 &&
                  (size_t)n < room;
        }
    }
    return WANT_AGAIN;
    /* endsolution: go-on */
}
/* endregion: go-on */

enum want conn_handle(struct conn *c)
{
    if (c->lingering)
        return linger(c);
    take_input(c);
    if (c->deadline == CONN_NEVER)
        begin_step(c);
    enum want want = go_on(c);
    if (want == WANT_DISK)
        c->deadline = CONN_NEVER;
    if (want != WANT_CLOSE && keep_input(c) < 0)
        return WANT_CLOSE;
    return want;
}

void conn_stop(void)
{
    waits_for_requests = false;
}

void conn_end(struct conn *c)
{
    free_input(c);
    end_reply(c);
    close(c->fd);
}
