#include "13-uring/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "12-aio/cached.h"
#include "13-uring/buffers.h"
#include "clock.h"
#include "stop.h"
#include "unsent.h"

#define LOOK_MS       100  /* between two looks whether the last reply has arrived */
#define UNREAD_LOOKS  10   /* after it has, where the client is still sending */
#define BUFFERS       8192 /* of what comes meanwhile, that are thrown away at most: 64 MiB */
#define STARVED_MOST  4096 /* turns in which others took all buffers: more are no bad luck */
#define TRIES         8    /* to open a file while folders on the way to it are being renamed */
#define LATE_MS       1000 /* that a client is given back, who has waited for the disk so long */
#define SILENT_STEPS  2    /* of -t seconds in which the disk has not answered: 12-aio/job.c */
#define LONGEST_STEPS 30   /* ... or has, but not this client */
#define GIVEN_UP_MOST 128  /* and not yet over: then the disk is asked for nothing more */

/* SOCKET_URING_OP_SIOCOUTQ and _SETSOCKOPT of Linux 6.7, for older headers. */
#define SOCKET_OUTQ       1
#define SOCKET_SETSOCKOPT 3

bool steps_lack_files;
static const struct options *options;
static const struct open_how *cached; /* NULL: to open a file may always wait */
static bool all_in_memory;
static long long disk_answered; /* by now_ms() */

static bool fail(struct conn *c, int error);
static bool linger(struct conn *c, bool unread);

void steps_set_up(const struct options *o)
{
    options = o;
    cached = cached_how(o->docroot_fd);
    all_in_memory = cached_is_all(o->docroot_fd);
}

static void begin_time_out(struct conn *c)
{
    conn_begin_step(c, options->timeout * 1000);
}

/* To each submission comes one completion. Until then the kernel has in hand what the submission
 * names, and none of it may be freed. */
static struct io_uring_sqe *submit(struct conn *c, enum step step)
{
    c->in_flight++;
    return ring_sqe((uintptr_t)c | step);
}

/* ---- receive: the kernel chooses a buffer when there is something to put into it */
static bool receive(struct conn *c)
{
    struct io_uring_sqe *sqe = submit(c, RECEIVED);

    io_uring_prep_recv(sqe, c->slot, NULL, HTTP_HEAD_MAX - c->have, stopping ? MSG_DONTWAIT : 0);
    sqe->flags |= IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT;
    return true;
}

static bool on_received(struct conn *c, const struct io_uring_cqe *cqe)
{
    if (cqe->res == -EINTR)
        return steps_go_on(c);
    if (cqe->res == -ENOBUFS) /* all were taken, and are about to come back */
        return c->starved++ < STARVED_MOST && steps_go_on(c);
    c->starved = 0;
    if (cqe->res == -ECANCELED) /* steps_stop(): what has come meanwhile is still to be had */
        return receive(c);
    if (stopping && cqe->res == -EAGAIN)
        return c->lingering || linger(c, false);
    if (cqe->res <= 0)
        return false;
    if (c->lingering && c->buffers-- == 0)
        return false;
    if (!c->lingering && !conn_keep(c, buffers_received(cqe), (size_t)cqe->res))
        return false;
    return steps_go_on(c);
}

/* ---- who has to wait for the disk, and for how long */

/* What is not in memory: when it is its turn, a worker of the kernel waits for it. */
static bool to_the_disk(struct conn *c, enum lane lane)
{
    if (conn_given_up() >= GIVEN_UP_MOST)
        return fail(c, EAGAIN);
    c->out->lane = lane;
    c->out->asked = now_ms();
    return steps_go_on(c);
}

/* The time that the disk took is not the client's. */
static void has_come(struct conn *c)
{
    if (c->lane == CACHED)
        return;
    disk_answered = now_ms();
    if (disk_answered - c->out->asked >= LATE_MS)
        begin_time_out(c);
    c->out->asked = disk_answered;
}

static bool is_lost(const struct sending *out)
{
    long long step = options->timeout * 1000LL, waited = now_ms() - out->asked;
    long long silent = now_ms() - disk_answered;

    return (waited > SILENT_STEPS * step && silent > SILENT_STEPS * step) ||
           waited > LONGEST_STEPS * step;
}

/* ---- open, and stat what was opened. Its name lies in the piece meanwhile, for it has to stay */

static bool planned(struct conn *c)
{
    if (options->verbose)
        reply_log(&c->out->reply, &c->out->request);
    if (c->out->used > 0) /* behind it may be the next request */
        conn_forget(c, (size_t)c->out->used);
    c->out->lane = CACHED;
    return steps_go_on(c);
}

/* As long as nothing of the reply is out the client can be told. */
static bool fail(struct conn *c, int error)
{
    bool was_planned = c->out->reply.status != 0;

    if (c->out->head_sent > 0)
        return false;
    sending_failed(c->out, error);
    c->out->lane = CACHED;
    return was_planned ? steps_go_on(c) : planned(c);
}

/* What the kernel has in its memory it opens at once; else it says EAGAIN (RESOLVE_CACHED), or
 * EXDEV of another file system, and a worker opens it. */
static bool open_file(struct conn *c)
{
    static struct open_how how = {
        .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };

    if (!sending_path(c->out, c->piece))
        return planned(c);
    struct io_uring_sqe *sqe = submit(c, OPENED);
    bool waits = c->lane == NAMES;
    io_uring_prep_openat2(sqe, options->docroot_fd, c->piece,
                          waits ? &how : (struct open_how *)cached);
    sqe->flags |= waits ? IOSQE_ASYNC : 0;
    return true;
}

static bool stat_file(struct conn *c)
{
    /* A direct descriptor will not do here: statx knows only numbers of the process (EBADF). */
    io_uring_prep_statx(submit(c, STATED), c->out->file, "", AT_EMPTY_PATH,
                        STATX_TYPE | STATX_SIZE | STATX_MTIME, &c->out->found);
    return true;
}

static bool on_opened(struct conn *c, int result)
{
    c->out->in_memory = c->lane == CACHED && all_in_memory;
    if (result >= 0)
        return stat_file(c);
    if (c->lane == CACHED && (result == -EAGAIN || result == -EXDEV || result == -EINVAL))
        return to_the_disk(c, NAMES);
    if ((result == -EINTR || result == -EAGAIN) && c->out->tries++ < TRIES)
        return open_file(c);
    steps_lack_files = steps_lack_files || result == -EMFILE || result == -ENFILE;
    has_come(c);
    return fail(c, -result);
}

static bool on_stated(struct conn *c, int result)
{
    if (result == -EINTR)
        return stat_file(c);
    has_come(c);
    if (result < 0)
        return fail(c, -result);
    sending_found(c->out, c->piece);
    return planned(c);
}

/* ---- read and send: a piece of the file, the head in front, so that they share a packet */

static bool send_piece(struct conn *c)
{
    struct io_uring_sqe *sqe = submit(c, SENT);

    /* It would wait for room, the piece in its hands, as long as the client likes: not here. */
    io_uring_prep_send(sqe, c->slot, c->piece, c->out->len, MSG_DONTWAIT | MSG_NOSIGNAL);
    sqe->flags |= IOSQE_FIXED_FILE;
    return true;
}

/*
 * Two submissions, linked: the second begins when the first has done all that it was to do, and
 * then it alone has a completion. If the first falls short, that is its result, and the second is
 * off. (A kernel that has memory for the first and none for the second begins the first alone, and
 * forgets the link: io_submit_sqes() of Linux. Who cannot risk that submits the second when he has
 * heard of the first.)
 */
static bool send_on(struct conn *c)
{
    struct sending *out = c->out;
    size_t n = sending_piece(out, c->piece, PIECE_BYTES);

    if (n > 0) {
        struct io_uring_sqe *sqe = ring_sqe((uintptr_t)c | READ);
        io_uring_prep_read(sqe, out->file, c->piece + out->len - n, (unsigned)n,
                           (uint64_t)out->reply.offset);
        sqe->rw_flags = c->lane == CACHED && !out->in_memory ? RWF_NOWAIT : 0;
        sqe->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS | (c->lane == BYTES ? IOSQE_ASYNC : 0);
    }
    return send_piece(c);
}

static bool on_short_read(struct conn *c, int result)
{
    struct sending *out = c->out;

    if (result > 0) {
        out->len = out->len - out->of_file + (size_t)result;
        return send_piece(c);
    }
    if (result == -EINTR)
        return send_on(c);
    if (c->lane == CACHED && (result == -EAGAIN || result == -EOPNOTSUPP)) {
        out->untold = result == -EOPNOTSUPP; /* as FUSE: then all is left to the workers */
        return to_the_disk(c, BYTES);
    }
    has_come(c);
    return fail(c, result < 0 ? -result : EIO); /* EIO: it is shorter than promised */
}

static bool wait_for_room(struct conn *c)
{
    struct io_uring_sqe *sqe = submit(c, WRITABLE); /* readiness, once: it needs no buffer */

    c->held_up = true;
    io_uring_prep_poll_add(sqe, c->slot, POLLOUT);
    sqe->flags |= IOSQE_FIXED_FILE;
    return true;
}

/* unsent_unlimited() of unsent.h by the ring, from Linux 6.7 on: where it fails the limit stays. */
static void lift_limit(struct conn *c)
{
    static const int none = 0;
    struct io_uring_sqe *sqe = ring_sqe(RING_NOBODY);

    io_uring_prep_rw(IORING_OP_URING_CMD, sqe, c->slot, NULL, 0, 0);
    sqe->cmd_op = SOCKET_SETSOCKOPT;
    sqe->addr = IPPROTO_TCP | (__u64)TCP_NOTSENT_LOWAT << 32; /* level, optname */
    sqe->file_index = sizeof none;                            /* optlen */
    sqe->addr3 = (uintptr_t)&none;                            /* optval */
    sqe->flags |= IOSQE_FIXED_FILE | IOSQE_CQE_SKIP_SUCCESS;
    c->out->is_read = true;
}

/* ---- after the last reply */
/*
 * SIOCOUTQ of tcp(7), by the ring: how many bytes has the peer not acknowledged? From Linux 6.7 on;
 * before that the answer is an error, and one waits until the client closes.
 */
static void ask_what_is_unacknowledged(struct conn *c)
{
    struct io_uring_sqe *sqe = submit(c, LOOKED);

    io_uring_prep_rw(IORING_OP_URING_CMD, sqe, c->slot, NULL, 0, 0);
    sqe->cmd_op = SOCKET_OUTQ;
    sqe->flags |= IOSQE_FIXED_FILE;
}

/* Whatever comes after close is answered with a reset, and that would take along what has not been
 * delivered of the last reply: 05b-nonblocking/conn.c. */
static bool linger(struct conn *c, bool unread)
{
    int looks = options->timeout * (1000 / LOOK_MS);

    c->lingering = true;
    c->unread = unread;
    conn_forget(c, c->have);
    c->looks = (unsigned short)(looks < USHRT_MAX ? looks : USHRT_MAX);
    c->buffers = BUFFERS;
    conn_begin_step(c, LOOK_MS);
    ask_what_is_unacknowledged(c);
    return true;
}

static bool on_looked(struct conn *c, int bytes)
{
    if ((bytes == 0 && !c->unread) || (bytes <= 0 && stopping))
        return false;
    if (bytes == 0 && c->looks > UNREAD_LOOKS)
        c->looks = UNREAD_LOOKS;
    if (!c->half_closed)
        steps_shut(c, SHUT_TO_LINGER, SHUT_WR);
    c->half_closed = true;
    return true;
}

static bool look(struct conn *c)
{
    if (c->looks-- == 0)
        return false;
    conn_begin_step(c, LOOK_MS);
    ask_what_is_unacknowledged(c);
    return true;
}

/* The client is told 503, if nothing of the reply is out, by a connection that takes c's place. */
static bool give_up(struct conn *c)
{
    const struct sending *out = c->out;
    struct sending *other = out->head_sent == 0 ? sending_new(&out->request, out->used) : NULL;
    struct conn *heir = other != NULL ? conn_give_up(c) : NULL;

    if (heir == NULL) {
        free(other);
        return false;
    }
    heir->out = other;
    begin_time_out(heir);
    other->asked = heir->since;
    if (out->reply.status != 0) { /* the request has been logged and forgotten */
        other->used = 0;
        other->request.line.len = 0;
    }
    return fail(heir, EAGAIN);
}

bool steps_overdue(struct conn *c)
{
    if (c->lingering)
        return look(c);
    if (c->out == NULL || c->held_up)
        return false;
    if (is_lost(c->out))
        return give_up(c);
    begin_time_out(c);
    return true;
}

static bool on_all_sent(struct conn *c)
{
    bool last = !c->out->reply.keep_alive, unread = sending_leaves_unread(c->out, c->have);
    bool may_close = c->out->reply.may_close;

    steps_end_reply(c);
    begin_time_out(c);
    if (last && may_close && !unread) /* the client has said that it sends no more: linger.h */
        return false;
    return last ? linger(c, unread) : steps_go_on(c);
}

static bool on_sent(struct conn *c, int result)
{
    struct sending *out = c->out;
    size_t n = result > 0 ? (size_t)result : 0;

    if (result < 0 && result != -EINTR && result != -EAGAIN)
        return false;
    if (sending_sent(out, n))
        return on_all_sent(c);
    if (!out->is_read && out->reply.offset - out->begin >= UNSENT_PROOF)
        lift_limit(c);
    if (out->step >= STEP_BYTES) {
        out->step = 0;
        begin_time_out(c);
    }
    has_come(c);
    conn_give_piece(c);
    out->lane = out->untold ? BYTES : CACHED;
    return n == out->len ? steps_go_on(c) : wait_for_room(c);
}

/* ---- from step to step */

/* A request is complete, or never can be. */
static bool begin_reply(struct conn *c, const struct request *req, int used)
{
    c->out = sending_new(req, used);
    begin_time_out(c);
    if (c->out == NULL)
        return false;
    c->out->asked = c->since;
    return used > 0 && cached == NULL ? to_the_disk(c, NAMES) : steps_go_on(c);
}

bool steps_go_on(struct conn *c)
{
    struct request req;
    int used;

    if (c->lingering)
        return receive(c);
    if (c->out == NULL && c->have > 0 && (used = http_parse(c->in, c->have, &req)) != 0)
        return begin_reply(c, &req, used);
    if (c->out == NULL)
        return receive(c);
    if (!conn_has_piece(c, c->out->lane))
        return true; /* it will come */
    return c->out->reply.status == 0 ? open_file(c) : send_on(c);
}

bool steps_completed(struct conn *c, enum step step, const struct io_uring_cqe *cqe)
{
    switch (step) {
    case RECEIVED:
        return on_received(c, cqe);
    case OPENED:
        return on_opened(c, cqe->res);
    case STATED:
        return on_stated(c, cqe->res);
    case READ:
        return on_short_read(c, cqe->res);
    case SENT:
        return on_sent(c, cqe->res);
    case WRITABLE:
        c->held_up = false;
        c->out->asked = now_ms();
        return cqe->res >= 0 && steps_go_on(c);
    case SHUT_TO_LINGER:
        return cqe->res >= 0 && steps_go_on(c);
    case LOOKED:
        return on_looked(c, cqe->res);
    default: /* SHUT: beside a step, and not one itself */
        return true;
    }
}

void steps_begin(struct conn *c)
{
    begin_time_out(c);
    receive(c);
}

/* Not shutdown(SHUT_RD): shut both ways, a socket answers what comes with a reset. */
void steps_stop(struct conn *c)
{
    io_uring_prep_cancel64(ring_sqe(RING_NOBODY), (uintptr_t)c | RECEIVED, 0);
}

void steps_shut(struct conn *c, enum step step, int how)
{
    struct io_uring_sqe *sqe = submit(c, step);

    io_uring_prep_shutdown(sqe, c->slot, how);
    sqe->flags |= IOSQE_FIXED_FILE;
}

void steps_end_reply(struct conn *c)
{
    if (c->out != NULL && c->out->file >= 0) {
        struct io_uring_sqe *sqe = ring_sqe(RING_NOBODY);
        io_uring_prep_close(sqe, c->out->file);
        sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    }
    free(c->out);
    c->out = NULL;
    conn_give_piece(c);
}
