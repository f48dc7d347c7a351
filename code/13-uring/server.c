/*
 * 13-uring: the server submits accept, receive, open, stat, read and send to one queue of the
 * kernel. One system call hands over what is new and brings what is done. This file begins and ends
 * connections; what one does between, step by step, is in steps.c. The states of a connection are
 * drawn in conn.h; what a job, a piece and a lane are: job.h.
 *
 * Run:  build/bin/13-uring -p 8080 /usr/share/doc      (-r 8: that many workers of the kernel)
 * Poke: strace build/bin/13-uring -p 8080 /usr/share/doc
 *       ps -T -C 13-uring       (while it is busy: the kernel's workers are its threads, iou-wrk)
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "13-uring/conn.h"
#include "13-uring/job.h"
#include "13-uring/ring.h"
#include "13-uring/steps.h"
#include "clock.h"
#include "net.h"
#include "options.h"
#include "stop.h"

#define WORKERS 256 /* threads of the kernel; 192 may wait for the disk: uring_jobs_set_up() */

/* What is submitted for the listening socket: one accept, a multishot one, a cancel, a poll. */
static enum { NOTHING, ONE, MANY, CANCELLED, WATCH } accepting;
static long long paused_until; /* no accept before, by now_ms() */

/*
 * Submits an accept. The sockets get slots in the ring's table (direct descriptors), not
 * descriptors of the process. Hazard: accept(2) without a free descriptor leaves the connection in
 * the queue. The ring first takes it out, and if the table is full (ENFILE) it closes it without a
 * reply. So: while there are more free slots than one wait can bring connections
 * (RING_COMPLETIONS), one submission accepts them all. With fewer, each accepts one. With none, the
 * server only polls whether a connection is pending, and on_pending() ends another client. If
 * completions were lost, that of the accept or of the poll may be among them. So it is cancelled:
 * either it then completes, or on_cancelled() hears that it is over. Then it is submitted anew.
 */
static void submit_accept(int listen_fd)
{
    int places = ring_slots() - uring_conns;
    bool many = places > RING_COMPLETIONS + 1;

    if (ring_lost || (accepting == MANY && !many)) {
        io_uring_prep_cancel_fd(ring_sqe(RING_CANCEL), listen_fd, IORING_ASYNC_CANCEL_ALL);
        accepting = CANCELLED;
        ring_lost = false;
    }
    if (accepting != NOTHING || now_ms() < paused_until)
        return;
    struct io_uring_sqe *sqe = ring_sqe(places > 0 ? RING_ACCEPT : RING_PENDING);
    accepting = places <= 0 ? WATCH : many ? MANY : ONE;
    if (places <= 0) {
        io_uring_prep_poll_add(sqe, listen_fd, POLLIN);
        return;
    }
    io_uring_prep_accept(sqe, listen_fd, NULL, NULL, 0);
    sqe->file_index = IORING_FILE_INDEX_ALLOC;
    sqe->ioprio |= many ? IORING_ACCEPT_MULTISHOT : 0;
}

static void close_slot(int slot)
{
    struct io_uring_sqe *sqe = ring_sqe(RING_IGNORED);

    io_uring_prep_close_direct(sqe, (unsigned)slot);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
}

/* Ends a connection. While operations that name it are in flight, the first call shuts its socket,
 * so that they fail soon, and on_completion() calls again after each. With none in flight it closes
 * the slot and frees. If ring_closes_late() a socket that is not half_closed is shut before that. A
 * job at the disk leaves first: its own completion frees it. */
static void end_connection(struct uring_conn *c)
{
    if (c->job != NULL && uring_job_can_leave(c->job))
        uring_conn_leave_job(c);
    bool shut_first = c->in_flight > 0 || (!c->half_closed && ring_closes_late());

    /* region: last */
    if (shut_first && c->state != ENDING)
        steps_shut(c, SHUT, SHUT_RDWR);
    c->state = ENDING;
    list_remove(&c->node);
    if (c->in_flight > 0)
        return;
    if (c->job != NULL)
        uring_job_free(c->job);
    close_slot(c->slot);
    uring_conn_free(c);
    /* endregion: last */
    paused_until = 0; /* the slot is free: try to accept, whatever the pause was for */
}

/* Ends the client that uring_conn_that_leaves() names, if any. The server accepts none until its
 * slot is free, at most ACCEPT_PAUSE_MS: meanwhile no other client has to leave. */
static void make_room(void)
{
    struct uring_conn *c = uring_conn_that_leaves(ACCEPT_PAUSE_MS);

    paused_until = now_ms() + ACCEPT_PAUSE_MS;
    if (c != NULL)
        end_connection(c);
}

/* `found`: how many there were to cancel, or minus an errno. */
static void on_cancelled(int found)
{
    if (found <= 0 && accepting == CANCELLED)
        accepting = NOTHING;
}

/* The signal to stop ends the poll, too, and submit_accept() may cancel it. Then no client has to
 * leave: none will come, or none is known to be there. */
static void on_pending(int result)
{
    accepting = NOTHING;
    if (result != -ECANCELED && !stopping && ring_slots() <= uring_conns)
        make_room();
}

static void on_accepted(const struct io_uring_cqe *cqe)
{
    int error = -cqe->res;

    if ((cqe->flags & IORING_CQE_F_MORE) == 0) /* the last one that this submission brings */
        accepting = NOTHING;
    if (error <= 0) {
        struct uring_conn *c = stopping ? NULL : uring_conn_new(cqe->res);
        accept_succeeded();
        if (c != NULL) {
            steps_begin(c);
            return;
        }
        if (!stopping) /* there is no memory */
            steps_refuse(cqe->res);
        close_slot(cqe->res);
    } else if (error != ECANCELED && !stopping && accept_must_pause(error)) {
        if (accept_lacks_room(error))
            make_room();
        else
            paused_until = now_ms() + ACCEPT_PAUSE_MS;
    }
}

static void on_completion(const struct io_uring_cqe *cqe)
{
    enum step step = (enum step)(cqe->user_data & STEP_BITS);
    void *named = (void *)(uintptr_t)(cqe->user_data & ~(uint64_t)STEP_BITS);
    struct uring_job *job = step <= READ ? named : NULL;
    struct uring_conn *c = job != NULL ? job->conn : named;

    if (step == OPENED && cqe->res >= 0)
        job->file = cqe->res; /* to be closed, even if its connection has ended */
    if (job != NULL)
        job->at_disk = false;
    if (c == NULL) {
        uring_job_free(job);
        return;
    }
    c->in_flight--;
    if (c->state == ENDING || !steps_completed(c, step, cqe))
        end_connection(c);
    ring_give_back(cqe);
}

static void take_completions(void)
{
    struct io_uring_cqe cqe;

    while (ring_next(&cqe)) {
        if (cqe.user_data == RING_ACCEPT)
            on_accepted(&cqe);
        else if (cqe.user_data == RING_PENDING)
            on_pending(cqe.res);
        else if (cqe.user_data == RING_CANCEL)
            on_cancelled(cqe.res);
        else if (cqe.user_data != RING_IGNORED)
            on_completion(&cqe);
    }
}

/* Cancels the receives that wait. Those submitted later do not wait: receive(), in steps.c. */
static void stop_receiving(void)
{
    struct uring_conn *c;

    while (ring_room() && (c = uring_conn_longest_idle()) != NULL && !c->no_wait)
        steps_stop_waiting(c);
}

/* The signal to stop shuts the listening socket, which completes an accept or a poll and so ends
 * the wait. If neither is submitted the wait is ACCEPT_PAUSE_MS at most. */
static int timeout_ms(void)
{
    struct uring_conn *c = uring_conn_next_due();
    long long left = c != NULL ? c->deadline - now_ms() : INT_MAX;

    if (accepting == NOTHING && left > ACCEPT_PAUSE_MS)
        left = ACCEPT_PAUSE_MS;
    return left < 0 ? 0 : left < INT_MAX ? (int)left : -1;
}

static void event_loop(int listen_fd, const struct options *o)
{
    struct uring_conn *c;
    struct uring_job *job;

    while (!stopping || uring_conns > 0 || uring_jobs > 0) {
        if (stopping)
            stop_receiving();
        else if (ring_room())
            submit_accept(listen_fd);
        /* Before the wait: of a client that is overdue by then completions were taken once more. */
        long long began = now_ms();
        int ms = timeout_ms();
        ring_wait(ms);
        take_completions();
        while (ring_room() && (job = uring_job_next()) != NULL)
            if (!steps_go_on((c = job->conn)))
                end_connection(c);
        while (ring_room() && (c = uring_conn_next_due()) != NULL && c->deadline <= began)
            if (!steps_expire(c))
                end_connection(c);
        if (was_stalled(began, ms))
            steps_renew(o->timeout * 1000);
    }
}

int main(int argc, char **argv)
{
    struct options o;
    struct own_option own = {'r', "N", "workers of the kernel for what blocks, default 256", NULL};

    options_parse_own(&o, argc, argv, "a web server with one queue for everything, io_uring", &own,
                      1);
    int workers = own.value != NULL ? options_number('r', own.value, 1, 4096) : WORKERS;
    stop_on_signals();
    int listen_fd = tcp_listen(&o); /* no thread before -u has its effect: see privileges.h */
    stop_wakes(listen_fd, -1);
    ring_set_up((unsigned)workers);
    uring_jobs_set_up((unsigned)workers);
    steps_set_up(&o);
    tcp_ready(listen_fd, &o);
    event_loop(listen_fd, &o);
    ring_end();
    return EXIT_SUCCESS;
}
