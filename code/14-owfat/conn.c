#include "14-owfat/conn.h"

#include <errno.h>
#include <io.h>
#include <iob.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "acknowledged.h"
#include "clock.h"
#include "http_parse.h"
#include "reply.h"
#include "stop.h"
#include "unsent.h"

/* What a client may do before the others have their turn. */
#define BUDGET_REQUESTS 16
#define BUDGET_BYTES    (256 * 1024)
#define PIECE           STEP_BYTES
#define LOOK_S          1 /* between two looks whether the last reply has arrived */

/*
 * What has just been read. By recv(), not io_tryread(): that puts a descriptor whose bytes filled
 * the buffer into a list, and io_close() does not close what is in that list.
 */
static char input[HTTP_HEAD_MAX];

struct owfat_reply {
    struct reply reply; /* its offset is how far the file has been put into the batch */
    io_batch *batch;    /* what is to be sent next; the library counts what of it is sent */
    bool has_body;      /* the request may be followed by bytes that are never read */
    off_t first;        /* the offset of the reply at its beginning */
};

static struct list by_step = EMPTY_LIST(by_step);

/* Bytes of the file that were put into the batch. The last piece may not be sent yet. */
static off_t put_so_far(const struct owfat_reply *out)
{
    return out->reply.offset - out->first;
}

/* The connection after c (NULL: the first), if its step or lingering has taken `ms`; else NULL. */
static struct owfat_conn *next_for(const struct owfat_conn *c, int ms)
{
    struct list *node = c != NULL ? c->node.next : by_step.next;
    struct owfat_conn *next = CONTAINER_OF(node, struct owfat_conn, node);

    return node != &by_step && now_ms() - next->since >= ms ? next : NULL;
}

struct owfat_conn *owfat_that_leaves(int ms)
{
    struct owfat_conn *c = NULL;

    while ((c = next_for(c, ms)) != NULL)
        if (c->out == NULL && !c->lingering)
            return c;
    for (c = NULL; (c = next_for(c, FULL_STEP_MS)) != NULL;)
        if (c->out != NULL && c->held_up && put_so_far(c->out) < UNSENT_PROOF)
            return c;
    for (c = NULL; (c = next_for(c, FULL_STEP_MS)) != NULL;)
        if (c->lingering)
            return c;
    return NULL;
}

static void give_time(const struct owfat_conn *c, int seconds)
{
    tai6464 deadline;

    taia_now(&deadline);
    taia_addsec(&deadline, &deadline, seconds);
    io_timeout(c->fd, deadline);
}

static void begin_step(struct owfat_conn *c)
{
    give_time(c, c->options->timeout);
    c->since = now_ms();
    c->renewed = false;
    list_remove(&c->node);
    list_append(&by_step, &c->node);
}

void owfat_renew_overdue(void)
{
    struct owfat_conn *next, *c = next_for(NULL, 0);

    for (; c != NULL && now_ms() - c->since >= c->options->timeout * 1000LL; c = next) {
        next = next_for(c, 0);
        if (c->out == NULL || c->renewed)
            continue;
        begin_step(c);
        c->renewed = true;
    }
}

bool owfat_init(struct owfat_conn *c, int fd, const struct options *o)
{
    *c = (struct owfat_conn){.fd = fd, .options = o};
    list_init(&c->node);
    if (!io_fd_canwrite(fd))
        return false;
    begin_step(c);
    return true;
}

/*
 * iob_send() sends all it has been given, as long as the socket takes it, and a fast client takes
 * it for ever. So it is given a piece at a time.
 */
static bool add_piece(struct owfat_conn *c)
{
    struct reply *r = &c->out->reply;
    off_t n = r->end - r->offset < PIECE ? r->end - r->offset : PIECE;

    begin_step(c);
    if (!iob_addfile(c->out->batch, r->fd, (uint64)r->offset, (uint64)n))
        return false;
    r->offset += n;
    unsent_count(c->fd, put_so_far(c->out) - n, put_so_far(c->out));
    return true;
}

/* `used` is what http_parse() returned, not 0. Returns false without memory. */
static bool begin_reply(struct owfat_conn *c, struct request *req, int used)
{
    struct owfat_reply *out = c->out = malloc(sizeof *out);

    if (out == NULL)
        return false;
    out->batch = iob_new(2);
    out->has_body = used > 0 && req->has_body;
    req->keep_alive = req->keep_alive && !stopping;
    req->is_last = req->is_last && !c->replied;
    c->replied = true;
    if (used < 0)
        reply_error(&out->reply, req, -used);
    else
        reply_plan(&out->reply, req, c->options->docroot_fd);
    begin_step(c);
    out->first = out->reply.offset;
    if (c->options->verbose)
        reply_log(&out->reply, req);
    if (used > 0) { /* what follows is the next request, if the client sends several at once */
        int64 left = array_bytes(&c->in) - used;
        char *in = array_start(&c->in);
        memmove(in, in + used, (size_t)left);
        array_truncate(&c->in, 1, left);
        if (left == 0)
            array_reset(&c->in);
    }
    return out->batch != NULL && iob_addbuf(out->batch, out->reply.head, out->reply.head_len) &&
           (out->reply.fd < 0 || add_piece(c));
}

static void end_reply(struct owfat_conn *c)
{
    if (c->out != NULL && c->out->reply.fd >= 0)
        io_close(c->out->reply.fd);
    if (c->out != NULL && c->out->batch != NULL)
        iob_free(c->out->batch);
    free(c->out);
    c->out = NULL;
}

static enum want finish(struct owfat_conn *c, bool unread, bool may_close)
{
    if (may_close && !unread)
        shutdown(c->fd, SHUT_WR); /* sends what MSG_MORE holds; close() may not */
    if (!unread && (may_close || all_acknowledged(c->fd)))
        return WANT_CLOSE;
    c->lingering = true;
    array_reset(&c->in);
    give_time(c, LOOK_S);
    return linger_begin(&c->linger, c->fd, unread, c->options->timeout);
}

bool owfat_expire(struct owfat_conn *c)
{
    char byte;

    if (c->out != NULL)
        return true;
    if (!c->lingering && recv(c->fd, &byte, 1, MSG_PEEK) <= 0) {
        begin_step(c);
        return finish(c, false, false) == WANT_CLOSE;
    }
    if (c->lingering && linger_look(&c->linger, c->fd, LOOK_S * 1000) == WANT_CLOSE)
        return true;
    give_time(c, LOOK_S); /* a new time, or io_timeouted() would name it again at once */
    return false;
}

/*
 * iob_send() sets MSG_MORE also where no file follows, and the kernel would hold the last packet
 * for 200 ms. Setting TCP_NODELAY, even if it is set already, sends what is held.
 */
static bool send_held(int fd)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) == 0;
}

static enum want after_reply(struct owfat_conn *c)
{
    bool last = !c->out->reply.keep_alive, unread = array_bytes(&c->in) > 0 || c->out->has_body;
    bool held = c->out->reply.fd < 0, may_close = c->out->reply.may_close;

    end_reply(c);
    begin_step(c);
    if (!last)
        return held && !send_held(c->fd) ? WANT_CLOSE : WANT_READ;
    return finish(c, unread, may_close);
}

/* WANT_READ here means that the reply is out, and that it was not the last. */
static enum want send_on(struct owfat_conn *c, long *budget)
{
    struct owfat_reply *out = c->out;

    while (iob_bytesleft(out->batch) > 0) {
        if (*budget <= 0)
            return WANT_AGAIN;
        int64 n = iob_send(c->fd, out->batch);
        if (n == -1 && errno == EAGAIN)
            return WANT_WRITE;
        if (n == 0) /* the file is shorter than promised */
            return WANT_CLOSE;
        if (n < 0 && errno != EINTR)
            return WANT_CLOSE;
        *budget -= n > 0 ? n : 0;
        if (iob_bytesleft(out->batch) == 0 && out->reply.offset < out->reply.end && !add_piece(c))
            return WANT_CLOSE;
    }
    return after_reply(c);
}

static enum want go_on(struct owfat_conn *c)
{
    long budget = BUDGET_BYTES;
    bool dry = false; /* the last recv() did not fill the buffer */

    for (int requests = 0; requests < BUDGET_REQUESTS;) {
        struct request req;
        int used;

        if (c->out != NULL) {
            enum want want = send_on(c, &budget);
            if (want != WANT_READ)
                return want;
        } else if (array_bytes(&c->in) > 0 &&
                   (used = http_parse(array_start(&c->in), (size_t)array_bytes(&c->in), &req)) !=
                       0) {
            if (!begin_reply(c, &req, used))
                return WANT_CLOSE;
            requests++;
        } else if (dry && !stopping) {
            return WANT_READ;
        } else {
            ssize_t n = recv(c->fd, input, sizeof input, 0);
            if (n < 0 && errno == EAGAIN)
                return stopping ? finish(c, false, false) : WANT_READ;
            if (n == 0 || (n < 0 && errno != EINTR))
                return WANT_CLOSE;
            if (n > 0)
                array_catb(&c->in, input, (uint64)n);
            if (array_failed(&c->in))
                return WANT_CLOSE;
            dry = n >= 0 && n < (ssize_t)sizeof input;
        }
    }
    return WANT_AGAIN;
}

enum want owfat_handle(struct owfat_conn *c)
{
    enum want want = c->lingering ? linger_read(&c->linger, c->fd) : go_on(c);
    c->held_up = want == WANT_WRITE;
    return want == WANT_AGAIN ? WANT_WRITE : want; /* as a rule there is room at once */
}

void owfat_end(struct owfat_conn *c)
{
    end_reply(c);
    array_reset(&c->in);
    io_close(c->fd);
    list_remove(&c->node);
}
