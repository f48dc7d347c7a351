/*
 * ring-map: what does a small request cost a server that waits with epoll, or with a ring?
 *
 * A server in one process answers CLIENTS connections of another process over loopback: a request
 * of 64 bytes gets a reply of 100, and nothing is parsed. Each connection writes DEPTH requests at
 * once and reads their replies before it writes again. The server has one recv() or receive for
 * what has come, and a send for each reply unless it joins them, in one of these ways:
 *   epoll            level-triggered: wait, recv, send
 *   epoll-joined     the same, with one send for all replies that a connection is owed
 *   plain            a ring without flags; one receive or one send of a connection is under way
 *   defer            the same with SINGLE_ISSUER and DEFER_TASKRUN
 *   multishot        one receive for all that a connection ever sends, into provided buffers
 *   multishot-defer  both
 *   chain            the same, and all replies that a connection is owed are handed over at once,
 *                    linked, so that they keep their order
 *   joined           as multishot-defer, with one send for all replies that a connection is owed
 * All connections are there before the server begins to wait. The server stays on the last
 * processor that it may use, the clients on the first.
 * Shows: one sample, of at least MILLISECONDS in the middle of the run. cpu_ns: the server's
 * processor time for a request, with that of the kernel's threads for its ring; rate: requests a
 * second; client_busy: processor time of the clients, in per cent of the time. Two are of the whole
 * run: calls: system calls of the server for a request; wait_share: the part of the time, from 0 to
 * 1, in which the server waited for its processor.
 * Needs: Linux 6.1 for DEFER_TASKRUN, 6.0 for multishot; a descriptor for each client.
 * Run:   ring-map -c 100 -d 1 -t 500 multishot
 */
#include <errno.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "askers.h"
#include "die.h"
#include "micro.h"

#define MAX_MS      20000
#define PLACES_MOST 2048 /* a power of two, and at least twice ASKERS_MOST */
#define EVENTS      256  /* that one wait may report, as in 09-epoll */
/* All that a connection may have sent. Not a power of two: the beginnings of a thousand buffers
 * would share few places of the processor's cache. */
#define BUFFER (DEPTH_MOST * REQUEST + 64)

/* How the replies are sent that a connection is owed. */
enum replies { EACH, CHAINED, JOINED };

struct way {
    const char *name;
    bool ring, multishot;
    enum replies replies;
    unsigned flags; /* of io_uring_setup(2) */
};

#define DEFER (IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)

static const struct way ways[] = {
    {"epoll", false, false, EACH, 0},      {"epoll-joined", false, false, JOINED, 0},
    {"plain", true, false, EACH, 0},       {"defer", true, false, EACH, DEFER},
    {"multishot", true, true, EACH, 0},    {"multishot-defer", true, true, EACH, DEFER},
    {"chain", true, true, CHAINED, DEFER}, {"joined", true, true, JOINED, DEFER},
};

static const struct way *way;
static int fds[ASKERS_MOST];
static size_t got[ASKERS_MOST];   /* bytes of requests that are not answered */
static size_t sends[ASKERS_MOST]; /* replies that are the kernel's, of a ring */
static size_t open_conns, calls;  /* calls of the system, once all connections are there */
static const char replies[DEPTH_MOST * REPLY];
static char received[PLACES_MOST][BUFFER];

static void end(size_t i)
{
    close(fds[i]);
    open_conns--;
}

/* ---- by epoll */

/* A send cannot wait or fall short: a client reads all its replies before it asks again, and 16 of
 * them are less than any send buffer. */
static void answer(size_t i)
{
    ssize_t n = recv(fds[i], received[0], BUFFER, 0);

    calls++;
    if (n < 0)
        die_errno("recv");
    if (n == 0)
        end(i);
    got[i] += (size_t)n;
    size_t owed = got[i] / REQUEST, together = way->replies == JOINED ? owed : 1;
    for (size_t sent = 0; sent < owed; sent += together) {
        if (send(fds[i], replies, together * REPLY, MSG_NOSIGNAL) != (ssize_t)(together * REPLY))
            die_errno("send");
        calls++;
    }
    got[i] %= REQUEST;
}

static void serve_by_epoll(void)
{
    struct epoll_event events[EVENTS];
    int fd = epoll_create1(EPOLL_CLOEXEC);

    if (fd < 0)
        die_errno("epoll_create1");
    for (size_t i = 0; i < open_conns; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};
        if (epoll_ctl(fd, EPOLL_CTL_ADD, fds[i], &event) < 0)
            die_errno("epoll_ctl");
    }
    while (open_conns > 0) {
        int n = epoll_wait(fd, events, EVENTS, -1);
        if (n < 0 && errno != EINTR)
            die_errno("epoll_wait");
        calls++;
        for (int event = 0; event < n; event++)
            answer(events[event].data.u64);
    }
}

/* ---- by a ring */

enum step { RECEIVED, SENT }; /* the lowest bit of a submission's data; above it the connection */

static struct io_uring ring;
static struct io_uring_buf_ring *provided;
static unsigned places; /* of the ring, and provided buffers: a power of two */

/* What liburing returns is minus the errno. */
static void demand(const char *what, int result, int status)
{
    if (result < 0)
        die(status, "%s: %s", what, strerror(-result));
}

static void provide(unsigned id)
{
    io_uring_buf_ring_add(provided, received[id], BUFFER, (unsigned short)id,
                          io_uring_buf_ring_mask(places), 0);
    io_uring_buf_ring_advance(provided, 1);
}

/* A completion holds its buffer until it is handled, and a connection has one or two completions
 * at a time: with two buffers for each connection, receives hardly ever find none (ENOBUFS). */
static void open_ring(size_t clients)
{
    static _Alignas(4096) char memory[PLACES_MOST * sizeof(struct io_uring_buf)];

    for (places = 64; places < 2 * clients; places *= 2)
        ;
    demand("io_uring_setup", io_uring_queue_init(places, &ring, way->flags), EXIT_UNSUPPORTED);
    if (!way->multishot)
        return;
    provided = (void *)memory;
    io_uring_buf_ring_init(provided);
    struct io_uring_buf_reg reg = {.ring_addr = (uintptr_t)memory, .ring_entries = places};
    demand("io_uring_register PBUF_RING", io_uring_register_buf_ring(&ring, &reg, 0),
           EXIT_UNSUPPORTED);
    for (unsigned id = 0; id < places; id++)
        provide(id);
}

/* Links do not reach from one call of io_uring_enter() to the next, so room is made for a whole
 * chain. */
static void make_room(size_t submissions)
{
    if (io_uring_sq_space_left(&ring) >= submissions)
        return;
    calls++;
    if (io_uring_submit(&ring) < 0 || io_uring_sq_space_left(&ring) < submissions)
        die(EXIT_FAILURE, "the ring takes no submissions");
}

static void receive(size_t i)
{
    make_room(1);
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    if (way->multishot) {
        io_uring_prep_recv_multishot(sqe, fds[i], NULL, 0, 0);
        sqe->flags |= IOSQE_BUFFER_SELECT; /* of the group 0 */
    } else
        io_uring_prep_recv(sqe, fds[i], received[i], BUFFER, 0);
    io_uring_sqe_set_data64(sqe, i << 1 | RECEIVED);
}

/* Of the send whose completion is handled: that of the last reply, or of all that were joined. */
static size_t bytes_of_send(size_t i)
{
    return way->replies == JOINED ? sends[i] * REPLY : REPLY;
}

/* One reply; or all in one send; or a chain of all, of which only the last has a completion.
 * MSG_WAITALL: a link breaks where a send falls short. */
static void send_replies(size_t i)
{
    sends[i] = way->replies == EACH ? 1 : got[i] / REQUEST;
    size_t operations = way->replies == CHAINED ? sends[i] : 1;
    make_room(operations);
    for (size_t left = operations; left > 0; left--) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
        io_uring_prep_send(sqe, fds[i], replies, bytes_of_send(i), MSG_NOSIGNAL | MSG_WAITALL);
        if (left > 1)
            sqe->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
        io_uring_sqe_set_data64(sqe, i << 1 | SENT);
    }
}

static void go_on(size_t i)
{
    if (got[i] >= REQUEST)
        send_replies(i);
    else if (!way->multishot)
        receive(i);
}

/* A multishot receive goes on until a completion comes without IORING_CQE_F_MORE. */
static void on_received(size_t i, int result, unsigned flags)
{
    if ((flags & IORING_CQE_F_BUFFER) != 0)
        provide(flags >> IORING_CQE_BUFFER_SHIFT);
    if (result != -ENOBUFS) /* EINVAL: a kernel without multishot receives */
        demand("recv", result, result == -EINVAL ? EXIT_UNSUPPORTED : EXIT_FAILURE);
    if (result == 0) {
        end(i);
        return;
    }
    if (result > 0)
        got[i] += (size_t)result;
    if (sends[i] == 0)
        go_on(i);
    if (way->multishot && (flags & IORING_CQE_F_MORE) == 0)
        receive(i);
}

static void on_sent(size_t i, int result)
{
    if (result < 0 || (size_t)result != bytes_of_send(i))
        die(EXIT_FAILURE, "send: %s", result < 0 ? strerror(-result) : "not the whole reply");
    got[i] -= sends[i] * REQUEST;
    sends[i] = 0;
    go_on(i);
}

static void serve_by_ring(void)
{
    for (size_t i = 0; i < open_conns; i++)
        receive(i);
    while (open_conns > 0) {
        struct io_uring_cqe *cqe;
        unsigned head, seen = 0;
        int result = io_uring_submit_and_wait(&ring, 1);
        if (result != -EINTR)
            demand("io_uring_enter", result, EXIT_FAILURE);
        calls++;
        io_uring_for_each_cqe(&ring, head, cqe)
        {
            if ((cqe->user_data & 1) == RECEIVED)
                on_received(cqe->user_data >> 1, cqe->res, cqe->flags);
            else
                on_sent(cqe->user_data >> 1, cqe->res);
            seen++;
        }
        io_uring_cq_advance(&ring, seen);
    }
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'c', "CLIENTS", 1, ASKERS_MOST, 100, 0},
        {'d', "DEPTH", 1, DEPTH_MOST, 1, 0},
        {'t', "MILLISECONDS", 1, MAX_MS, 500, 0},
    };
    const struct command_line line = {options, 3,
                                      "epoll|epoll-joined|plain|defer|multishot|multishot-defer|"
                                      "chain|joined",
                                      1, 1};
    char **words = read_command_line(argc, argv, &line);
    size_t clients = options[0].value, depth = options[1].value;
    struct seen *seen = seen_new();

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(words[0], ways[i].name) == 0)
            way = &ways[i];
    if (way == NULL)
        refuse(&line);
    if (way->ring) /* first of all: a kernel that has none ends the program */
        open_ring(clients);
    pid_t askers = askers_start(fds, clients, depth, options[2].value * (uint64_t)1000000, seen);
    stay_on(LAST_PROCESSOR);
    open_conns = clients;
    uint64_t start = now_ns();
    int64_t waited = waited_ns();
    if (way->ring)
        serve_by_ring();
    else
        serve_by_epoll();
    double wait_share = (double)(waited_ns() - waited) / (double)(now_ns() - start);
    askers_await_end(askers);
    puts("cpu_ns\trate\tcalls\tclient_busy\twait_share");
    printf("%.1f\t%.1f\t%.4f\t%.1f\t", seen->cpu_ns, seen->rate,
           (double)calls / (double)seen->answered, seen->client_busy);
    if (waited < 0) /* this kernel does not count it */
        puts("-");
    else
        printf("%.4f\n", wait_share);
    samples_finish();
    return EXIT_SUCCESS;
}
