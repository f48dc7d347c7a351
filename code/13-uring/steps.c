#include "13-uring/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>

#include "12-aio/cached.h"
#include "clock.h"
#include "stop.h"
#include "unsent.h"

#define TRIES         8    /* to open a file while folders on the way to it are being renamed */
#define LATE_MS       1000 /* a client that has waited for the disk so long is given a new step */
#define SILENT_STEPS  2    /* of -t seconds in which the disk has not answered: 12-aio/job.c */
#define LONGEST_STEPS 30   /* ... or has answered other clients, but not this one */
#define LOST_MOST     128  /* jobs without an answer: then each request for the disk gets 503 */

/* SOCKET_URING_OP_SIOCOUTQ and _SETSOCKOPT of Linux 6.7, for older headers. */
#define SOCKET_OUTQ       1
#define SOCKET_SETSOCKOPT 3

static const struct options *options;
static const struct open_how *cached; /* NULL: to open a file may always wait for the disk */
static bool all_in_memory;
static long long disk_answered; /* by now_ms() */

static bool reply_with_error(struct uring_conn *c, int error);
static bool linger(struct uring_conn *c, bool unread);

void steps_set_up(const struct options *o)
{
    options = o;
    cached = cached_how(o->docroot_fd);
    all_in_memory = cached_is_all(o->docroot_fd);
}

static void begin_step(struct uring_conn *c, enum uring_state state)
{
    uring_conn_begin_step(c, state, options->timeout * 1000);
}

/* One completion will come for it; until then nothing that the submission names may be freed. */
static struct io_uring_sqe *submit(struct uring_conn *c, enum step step)
{
    c->in_flight++;
    if (step > READ)
        return ring_sqe((uintptr_t)c | step);
    c->job->at_disk = true;
    return ring_sqe((uintptr_t)c->job | step);
}

/* ---- receive */

/* The submission has no buffer: the kernel takes one of the ring's for the bytes that arrive. */
static bool receive(struct uring_conn *c)
{
    struct io_uring_sqe *sqe = submit(c, RECEIVED);
    int flags = c->no_wait || stopping ? MSG_DONTWAIT : 0;

    io_uring_prep_recv(sqe, c->slot, NULL, HTTP_HEAD_MAX - c->have, flags);
    sqe->flags |= IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT;
    return true;
}

/*
 * How often in a row a receive may find no buffer (ENOBUFS) before its connection ends. All buffers
 * come back in this pass of the loop, so the receive is submitted again. Each pass serves 64
 * (RECEIVE_BUFFERS): each of uring_conns should have had its turn after uring_conns / 64 passes.
 * This allows four times that, and 64 where there are few.
 */
static int starved_most(void)
{
    return 64 + uring_conns / 16;
}

static bool on_received(struct uring_conn *c, const struct io_uring_cqe *cqe)
{
    if (cqe->res == -ENOBUFS)
        return c->starved++ < starved_most() && receive(c);
    c->starved = 0;
    if (cqe->res == -EAGAIN) /* with MSG_DONTWAIT: nothing has come */
        return c->state == LINGERING || linger(c, false);
    if (cqe->res <= 0)
        return false;
    if (c->state == LINGERING)
        return (++c->discarded % LINGER_READS != 0 || linger_pay(&c->linger, 10)) && receive(c);
    return uring_conn_keep(c, ring_received(cqe), (size_t)cqe->res) && steps_go_on(c);
}

/* ---- which jobs wait for the disk, and for how long */

/* The job waits for a piece of the lane; then a worker of the kernel waits for the disk. */
static bool to_the_disk(struct uring_conn *c, enum lane lane)
{
    if (uring_jobs_lost >= LOST_MOST)
        return reply_with_error(c, EAGAIN);
    uring_job_enter(c->job, lane);
    c->job->asked = now_ms();
    return steps_go_on(c);
}

/* If the disk took LATE_MS, the client gets a new deadline. */
static void note_disk_answer(struct uring_conn *c)
{
    if (c->job->lane == CACHED)
        return;
    disk_answered = now_ms();
    if (disk_answered - c->job->asked >= LATE_MS)
        begin_step(c, REPLYING);
    c->job->asked = disk_answered;
}

static bool is_too_late(const struct uring_job *job)
{
    long long step = options->timeout * 1000LL, waited = now_ms() - job->asked;
    long long silent = now_ms() - disk_answered;

    return (waited > SILENT_STEPS * step && silent > SILENT_STEPS * step) ||
           waited > LONGEST_STEPS * step;
}

/* If nothing of the reply is out, a new job tells the client 503; the old one stays at the disk. */
static bool give_up(struct uring_conn *c)
{
    struct uring_job *job;

    if (c->job->sent > 0 || !uring_job_can_leave(c->job) ||
        (job = uring_job_new(c, &c->job->request, c->job->used)) == NULL)
        return false;
    c->job->is_lost = true;
    uring_jobs_lost++;
    uring_conn_leave_job(c);
    c->job = job;
    begin_step(c, REPLYING);
    job->asked = c->since;
    return reply_with_error(c, EAGAIN);
}

/* ---- open, and stat what was opened */

static bool go_on_with_reply(struct uring_conn *c)
{
    struct uring_job *job = c->job;

    if (options->verbose && job->used != 0) /* 0: this reply replaces one that is logged */
        reply_log(&job->reply, &job->request);
    if (job->used > 0) /* behind it may be the next request */
        uring_conn_forget(c, (size_t)job->used);
    job->used = 0;
    uring_job_enter(job, CACHED);
    return steps_go_on(c);
}

/* As long as nothing of the reply is out the client can be told; else false. */
static bool reply_with_error(struct uring_conn *c, int error)
{
    if (c->job->sent > 0)
        return false;
    reply_errno(&c->job->reply, &c->job->request, error);
    return go_on_with_reply(c);
}

/*
 * First from what is in memory (RESOLVE_CACHED). On EAGAIN, or EXDEV (another file system, or out
 * of DOCROOT), a worker opens the file. The path stays in the piece: the kernel reads it when the
 * submission is handed over, and on_stated() takes the type of the content from it.
 */
static bool open_file(struct uring_conn *c)
{
    static struct open_how how = {
        .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    struct uring_job *job = c->job;
    bool waits = job->lane == NAMES;
    int status = job->used < 0 ? -job->used : reply_path(&job->request, job->piece);

    if (status != 0) {
        reply_error(&job->reply, &job->request, status);
        return go_on_with_reply(c);
    }
    struct io_uring_sqe *sqe = submit(c, OPENED);
    io_uring_prep_openat2(sqe, options->docroot_fd, job->piece,
                          waits ? &how : (struct open_how *)cached);
    sqe->flags |= waits ? IOSQE_ASYNC : 0;
    return true;
}

/* No descriptor for a file: shuts the socket of the slowest reply, if there is one, so that its
 * file is closed soon. The request at hand gets 503. */
static void make_room_for_files(void)
{
    struct uring_conn *slowest = uring_conn_slowest();

    if (slowest != NULL)
        steps_shut(slowest, SHUT, SHUT_RDWR);
}

static bool on_opened(struct uring_conn *c, int result)
{
    struct uring_job *job = c->job;

    if (result >= 0) {
        job->is_tmpfs = job->lane == CACHED && all_in_memory;
        return steps_go_on(c);
    }
    if (job->lane == CACHED && (result == -EAGAIN || result == -EXDEV || result == -EINVAL))
        return to_the_disk(c, NAMES);
    if ((result == -EINTR || result == -EAGAIN) && job->tries++ < TRIES)
        return steps_go_on(c);
    if (result == -EMFILE || result == -ENFILE)
        make_room_for_files();
    note_disk_answer(c);
    return reply_with_error(c, -result);
}

static bool stat_file(struct uring_conn *c)
{
    /* statx takes no direct descriptor (EBADF), so the file has one of the process. */
    io_uring_prep_statx(submit(c, STATED), c->job->file, "", AT_EMPTY_PATH,
                        STATX_TYPE | STATX_SIZE | STATX_MTIME, &c->job->found);
    return true;
}

static bool on_stated(struct uring_conn *c, int result)
{
    struct uring_job *job = c->job;

    note_disk_answer(c);
    if (result < 0)
        return reply_with_error(c, -result);
    struct stat st = {
        .st_mode = job->found.stx_mode,
        .st_size = (off_t)job->found.stx_size,
        .st_mtime = (time_t)job->found.stx_mtime.tv_sec,
    };
    reply_found(&job->reply, &job->request, job->file, &st, job->piece);
    return go_on_with_reply(c);
}

/* ---- read and send: a piece of the file, the head in front, so that they share a packet */

static bool send_piece(struct uring_conn *c)
{
    struct io_uring_sqe *sqe = submit(c, SENT);

    /* MSG_DONTWAIT: a send that waits would hold its piece until a slow client reads. On EAGAIN
     * on_sent() gives the piece back and polls for POLLOUT. */
    io_uring_prep_send(sqe, c->slot, c->job->piece, c->job->len, MSG_DONTWAIT | MSG_NOSIGNAL);
    sqe->flags |= IOSQE_FIXED_FILE;
    return true;
}

/*
 * Two submissions, linked: the send begins when the read has done all that it was to do, and only
 * the send has a completion. If the read falls short, only the read has one, and the send is
 * cancelled. A worker's read is not linked: the send finds its socket when it begins, and by then
 * the slot may belong to another client.
 * Hazard: a kernel that has memory for the read and none for the send runs the read unlinked and
 * takes the send later (io_submit_sqes() of Linux). If that read fell short, both have a
 * completion, though in_flight counts one: the client may get bytes of another client's file, and
 * the connection be freed while a send still names it. A server that must not risk that submits the
 * send after the read's completion.
 */
static bool read_and_send(struct uring_conn *c)
{
    struct uring_job *job = c->job;
    off_t from = uring_job_fill(job);
    size_t n = job->len - job->head; /* bytes of the file */
    bool by_worker = n > 0 && job->lane == BYTES;

    if (n > 0) {
        struct io_uring_sqe *sqe = by_worker ? submit(c, READ) : ring_sqe((uintptr_t)job | READ);
        io_uring_prep_read(sqe, job->file, job->piece + job->head, (unsigned)n, (uint64_t)from);
        sqe->flags |= by_worker ? IOSQE_ASYNC : IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
        sqe->rw_flags = by_worker || job->is_tmpfs ? 0 : RWF_NOWAIT;
    }
    return by_worker || send_piece(c);
}

/* The completion of a worker's read, or of a linked read that has fallen short. */
static bool on_read(struct uring_conn *c, int result)
{
    struct uring_job *job = c->job;

    if (job->lane == CACHED && (result == -EAGAIN || result == -EOPNOTSUPP)) {
        job->cannot_tell = result == -EOPNOTSUPP;
        return to_the_disk(c, BYTES);
    }
    note_disk_answer(c);
    if (result <= 0)
        return reply_with_error(c, result < 0 ? -result : EIO); /* EIO: shorter than promised */
    job->len = job->head + (size_t)result;
    return send_piece(c);
}

/* Polls once for POLLOUT; meanwhile the job holds no piece. The unsent bytes are read again. */
static bool wait_for_room(struct uring_conn *c)
{
    struct io_uring_sqe *sqe = submit(c, WRITABLE);

    c->held_up = true;
    io_uring_prep_poll_add(sqe, c->slot, POLLOUT);
    sqe->flags |= IOSQE_FIXED_FILE;
    return true;
}

/* The sockets have no number for setsockopt(2) and ioctl(2). From Linux 6.7 on there are operations
 * for both; before that these fail. */
static void socket_command(struct io_uring_sqe *sqe, const struct uring_conn *c, unsigned command)
{
    io_uring_prep_rw(IORING_OP_URING_CMD, sqe, c->slot, NULL, 0, 0);
    sqe->cmd_op = command;
    sqe->flags |= IOSQE_FIXED_FILE;
}

/* As unsent_unlimited() of unsent.h, without unsent_lifts. Where it fails the limit stays. */
static void lift_limit(struct uring_conn *c)
{
    static const int none = 0;
    struct io_uring_sqe *sqe = ring_sqe(RING_IGNORED);

    socket_command(sqe, c, SOCKET_SETSOCKOPT);
    sqe->addr = IPPROTO_TCP | (__u64)TCP_NOTSENT_LOWAT << 32; /* level, optname */
    sqe->file_index = sizeof none;                            /* optlen */
    sqe->addr3 = (uintptr_t)&none;                            /* optval */
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
}

static bool on_all_sent(struct uring_conn *c)
{
    struct uring_job *job = c->job;
    bool last = !job->reply.keep_alive, may_close = job->reply.may_close && !c->replied;
    bool unread = c->have > 0 || job->request.has_body;

    c->replied = true;
    c->job = NULL;
    uring_job_free(job);
    begin_step(c, RECEIVING);
    if (last && may_close &&
        !unread) /* the client sends no more, and the reply is short: reply.h */
        return false;
    return last ? linger(c, unread) : steps_go_on(c);
}

static bool on_sent(struct uring_conn *c, int result)
{
    struct uring_job *job = c->job;
    long long before = job->sent;

    if (result < 0 && result != -EAGAIN)
        return false;
    job->sent += result > 0 ? result : 0;
    if (job->sent == uring_job_size(job))
        return on_all_sent(c);
    if (before < UNSENT_PROOF && job->sent >= UNSENT_PROOF)
        lift_limit(c);
    if (before / STEP_BYTES != job->sent / STEP_BYTES)
        begin_step(c, REPLYING);
    uring_job_give_piece(job);
    uring_job_enter(job, job->cannot_tell ? BYTES : CACHED);
    return job->sent - before == (long long)job->len ? steps_go_on(c) : wait_for_room(c);
}

/* ---- after the last reply */

/* SIOCOUTQ of tcp(7): how many bytes has the client not acknowledged? */
static bool look_whether_arrived(struct uring_conn *c)
{
    if (!linger_pay(&c->linger, LINGER_LOOK_MS))
        return false;
    uring_conn_begin_step(c, LINGERING, LINGER_LOOK_MS);
    socket_command(submit(c, LOOKED), c, SOCKET_OUTQ);
    return true;
}

/* linger.h, by the ring. First asks whether all has arrived; if not, on_looked() shuts the socket
 * for sending, and what still comes is read and thrown away. */
static bool linger(struct uring_conn *c, bool unread)
{
    c->linger.unread = unread;
    c->linger.credit = (unsigned short)LINGER_CREDIT(options->timeout);
    uring_conn_forget(c, c->have);
    return look_whether_arrived(c);
}

/* Where the kernel cannot tell, a stopping server does not wait for the client to close. */
static bool on_looked(struct uring_conn *c, int bytes)
{
    if (linger_is_over(&c->linger, bytes == 0) || (bytes < 0 && stopping))
        return false;
    if (!c->half_closed)
        steps_shut(c, HALF_CLOSED, SHUT_WR);
    c->half_closed = true;
    return true;
}

/* ---- from step to step */

/* used > 0: the length of a complete request; < 0: minus the status that refuses it. */
static bool begin_reply(struct uring_conn *c, const struct request *req, int used)
{
    c->job = uring_job_new(c, req, used);
    if (c->job == NULL)
        return false;
    begin_step(c, REPLYING);
    c->job->asked = c->since;
    return used > 0 && cached == NULL ? to_the_disk(c, NAMES) : steps_go_on(c);
}

bool steps_go_on(struct uring_conn *c)
{
    struct request req;
    int used;

    if (c->job == NULL && c->have > 0 && (used = http_parse(c->in, c->have, &req)) != 0)
        return begin_reply(c, &req, used);
    if (c->job == NULL)
        return receive(c);
    if (!uring_job_take_piece(c->job)) { /* in a queue, until uring_job_next() returns it */
        c->job->asked = now_ms();
        return true;
    }
    if (c->job->reply.status != 0)
        return read_and_send(c);
    return c->job->file < 0 ? open_file(c) : stat_file(c);
}

bool steps_completed(struct uring_conn *c, enum step step, const struct io_uring_cqe *cqe)
{
    /* The operation is submitted again. So is the receive that steps_stop_waiting() has cancelled:
     * now with MSG_DONTWAIT, and on EAGAIN on_received() begins to linger. */
    bool interrupted = cqe->res == -EINTR || cqe->res == -ECANCELED;

    if (interrupted && step != OPENED && step < WRITABLE)
        return steps_go_on(c);
    switch (step) {
    case OPENED:
        return on_opened(c, cqe->res);
    case STATED:
        return on_stated(c, cqe->res);
    case READ:
        return on_read(c, cqe->res);
    case RECEIVED:
        return on_received(c, cqe);
    case SENT:
        return on_sent(c, cqe->res);
    case WRITABLE:
        c->held_up = false;
        c->job->asked = now_ms();
        return cqe->res >= 0 && steps_go_on(c);
    case LOOKED:
        return on_looked(c, cqe->res);
    case HALF_CLOSED:
        return cqe->res >= 0 && receive(c);
    default: /* SHUT: the step in hand goes on, and fails */
        return true;
    }
}

bool steps_begin(struct uring_conn *c)
{
    begin_step(c, RECEIVING);
    return receive(c);
}

/* The first two do not wait, so they are done in this order. A worker of the kernel shuts, and the
 * close that is linked to that comes after it. */
void steps_refuse(int slot)
{
    static struct reply refusal; /* one for all: it is the same */
    static char junk[HTTP_HEAD_MAX];
    struct io_uring_sqe *take = ring_sqe(RING_IGNORED), *tell = ring_sqe(RING_IGNORED);
    struct io_uring_sqe *shut = ring_sqe(RING_IGNORED);

    reply_error(&refusal, NULL, 503);
    io_uring_prep_recv(take, slot, junk, sizeof junk, MSG_DONTWAIT);
    io_uring_prep_send(tell, slot, refusal.head, refusal.head_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    io_uring_prep_shutdown(shut, slot, SHUT_WR);
    take->flags |= IOSQE_FIXED_FILE;
    tell->flags |= IOSQE_FIXED_FILE;
    shut->flags |= IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK;
}

bool steps_expire(struct uring_conn *c)
{
    if (c->state == LINGERING)
        return look_whether_arrived(c);
    if (c->held_up || c->no_wait) /* no_wait: a completion was lost (EBADR, ring.c) */
        return false;
    bool from_memory = c->state == REPLYING && c->job->lane == CACHED && !c->job->at_disk;
    if (c->state == REPLYING && !from_memory && is_too_late(c->job))
        return give_up(c);
    if (c->state == REPLYING)
        begin_step(c, REPLYING);
    else
        steps_stop_waiting(c);
    return true;
}

void steps_renew(int ms)
{
    disk_answered = now_ms(); /* it may have, while we were stopped */
    uring_conns_renew_overdue(ms);
}

/* Not shutdown(SHUT_RD): lingering shuts for sending, and Linux answers bytes to a socket that is
 * shut both ways with a reset. */
void steps_stop_waiting(struct uring_conn *c)
{
    begin_step(c, RECEIVING);
    c->no_wait = true;
    io_uring_prep_cancel64(ring_sqe(RING_IGNORED), (uintptr_t)c | RECEIVED, 0);
}

void steps_shut(struct uring_conn *c, enum step step, int how)
{
    struct io_uring_sqe *sqe = submit(c, step);

    io_uring_prep_shutdown(sqe, c->slot, how);
    sqe->flags |= IOSQE_FIXED_FILE;
}
