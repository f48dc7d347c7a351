/*
 * 13-uring: nobody asks whether a call would block. What a request needs is handed to the kernel,
 * and what comes back is not "you may try" but "it is done": accept, receive, open, stat, read and
 * send in one queue, by one system call. Who owns what meanwhile is here; a request's way, step by
 * step, is in steps.c.
 *
 * Run:  build/bin/13-uring -p 8080 /usr/share/doc      (-r 8: that many workers of the kernel)
 * Poke: strace build/bin/13-uring -p 8080 /usr/share/doc
 *       ps -T -C 13-uring       (while it is busy: the kernel's workers are its threads, iou-wrk)
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include "13-uring/buffers.h"
#include "13-uring/conn.h"
#include "13-uring/ring.h"
#include "13-uring/steps.h"
#include "clock.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

#define WORKERS 256 /* of which half may wait for bytes, and a quarter for names: buffers.c */

static enum { NOBODY, ONE, MANY, NO_MORE, WATCHED } invited;
static long long shut_until; /* by now_ms() */

/*
 * One submission for as many connections as come. Their sockets get no numbers of the process but
 * places in a table of the ring (direct descriptors).
 *
 * accept(2) that finds no descriptor leaves the connection in the queue. Here it is taken out of
 * the queue first, and where the table is full, ENFILE, its connection is closed: nobody can tell
 * it why. So there must be a place for all who may come before we look again: in one wait, as many
 * as the queue of completions can tell us of. Nearer to the end of the table they are invited one
 * by one, and at its end it is only watched whether somebody comes: make_room().
 */
static void invite(int listen_fd)
{
    int places = ring_slots() - conn_count();
    bool many = places > RING_COMPLETIONS + 1;

    if (invited == MANY && !many) {
        io_uring_prep_cancel64(ring_sqe(RING_NOBODY), RING_GUEST, 0);
        invited = NO_MORE;
    }
    if (invited != NOBODY || now_ms() < shut_until)
        return;
    struct io_uring_sqe *sqe = ring_sqe(places > 0 ? RING_GUEST : RING_PENDING);
    invited = places <= 0 ? WATCHED : many ? MANY : ONE;
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
    struct io_uring_sqe *sqe = ring_sqe(RING_NOBODY);

    io_uring_prep_close_direct(sqe, (unsigned)slot);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
}

/* Before Linux 6.13 a direct descriptor that is closed stays open until all have ended that were
 * under way then, a silent client's receive among them: close alone would not hang up. */
static bool close_is_late(void)
{
    static int late = -1;
    struct utsname system;
    int major = 0, minor = 0;

    if (late < 0)
        late = uname(&system) == 0 && sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
               (major < 6 || (major == 6 && minor < 13));
    return late > 0;
}

/*
 * A connection ends when the last that names it has been heard of, and not before: the kernel may
 * be writing to its memory. What is in flight is made to fail soon; whoever hears of it calls this
 * again.
 */
static void end(struct conn *c)
{
    bool shut_first = c->in_flight > 0 || (!c->half_closed && close_is_late());

    /* region: last */
    if (shut_first && !c->ending)
        steps_shut(c, SHUT, SHUT_RDWR);
    c->ending = true;
    conn_leave_queue(c);
    if (c->in_flight > 0)
        return;
    steps_end_reply(c);
    if (c->slot >= 0)
        close_slot(c->slot);
    conn_free(c);
    /* endregion: last */
    shut_until = 0; /* here is a place */
}

/* There is no place for a client that is pending, so another leaves, but none that had something to
 * do just now. (Its next request may be among the completions that we have not looked at: then it
 * has to come again.) Its place is free when a worker of the kernel has shut its socket. Until then
 * no client is invited, or another would have to leave, too. */
static void make_room(void)
{
    struct conn *c = conn_that_leaves(ACCEPT_PAUSE_MS);

    shut_until = now_ms() + ACCEPT_PAUSE_MS;
    if (c != NULL)
        end(c);
}

/* Slow readers may hold all the files that we may open, though there are places for clients. */
static void make_room_for_files(void)
{
    struct conn *c = steps_lack_files ? conn_slowest_reply() : NULL;

    steps_lack_files = false;
    if (c != NULL)
        end(c);
}

static void on_pending(void)
{
    invited = NOBODY;
    if (ring_slots() <= conn_count())
        make_room();
}

static void on_accepted(const struct io_uring_cqe *cqe)
{
    int error = -cqe->res;

    if ((cqe->flags & IORING_CQE_F_MORE) == 0) /* the last one that this submission brings */
        invited = NOBODY;
    if (error <= 0) {
        struct conn *c = stopping ? NULL : conn_new(cqe->res);
        accept_succeeded();
        if (c != NULL)
            steps_begin(c);
        else
            close_slot(cqe->res);
    } else if (error != ECANCELED && !stopping && accept_must_pause(error)) { /* invite() cancels */
        if (accept_lacks_room(error))
            make_room();
        else
            shut_until = now_ms() + ACCEPT_PAUSE_MS;
    }
}

static void go_on(struct conn *c)
{
    if (c->ending || !steps_go_on(c))
        end(c);
}

static void on_completion(const struct io_uring_cqe *cqe)
{
    struct conn *c = (struct conn *)(uintptr_t)(cqe->user_data & ~(uint64_t)STEP_BITS);
    enum step step = (enum step)(cqe->user_data & STEP_BITS);

    c->in_flight--;
    if (step == OPENED && cqe->res >= 0)
        c->out->file = cqe->res; /* ours from now on, even if there is no use for it any more */
    if (c->ending || !steps_completed(c, step, cqe))
        end(c);
    buffers_give_back(cqe);
}

static bool stop_client(struct conn *c)
{
    c->stopped = ring_room();
    if (c->stopped)
        steps_stop(c);
    return c->stopped;
}

/* As long as nobody is invited, stop_wakes() has nobody to wake: so look again soon. */
static int timeout_ms(void)
{
    int ms = conn_timeout_ms();

    return invited == NOBODY && (ms < 0 || ms > ACCEPT_PAUSE_MS) ? ACCEPT_PAUSE_MS : ms;
}

static void event_loop(int listen_fd)
{
    struct io_uring_cqe cqe;
    struct conn *c;

    while (!stopping || conn_count() > 0) {
        if (stopping)
            conn_stop_all(stop_client);
        else if (ring_room())
            invite(listen_fd);
        ring_wait(timeout_ms());
        while (ring_next(&cqe)) {
            if (cqe.user_data == RING_GUEST)
                on_accepted(&cqe);
            else if (cqe.user_data == RING_PENDING)
                on_pending();
            else if (cqe.user_data != RING_NOBODY)
                on_completion(&cqe);
        }
        if (ring_room())
            make_room_for_files();
        while (ring_room() && (c = conn_next_with_piece()) != NULL)
            go_on(c);
        while (ring_room() && (c = conn_overdue()) != NULL)
            if (!steps_overdue(c))
                end(c);
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
    buffers_set_up((unsigned)workers);
    steps_set_up(&o);
    tcp_ready(listen_fd, &o);
    event_loop(listen_fd);
    ring_end();
    return EXIT_SUCCESS;
}
