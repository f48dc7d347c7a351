/*
 * epoll-facts: what becomes of a registration when its descriptor is closed, and of a stream that
 * two threads take from one epoll.
 *
 * Shows: one line; 1 is yes, 0 is no.
 *   closed_event   after dup() and close() an event is reported for the number that was closed
 *   delete_ebadf   EPOLL_CTL_DEL of that number fails with EBADF
 *   reused_event   another file has the number, and the old file's event still bears it
 *   undup_event    without dup(), an event is reported after close()
 *   out_of_order   of WRITES numbered parts of a stream, how many were read after a part with a
 *                  higher number had been read, by the same thread or the other; two threads
 *                  wait edge-triggered, or with EPOLLONESHOT
 * The last is a race: how often it is lost depends on the processors.
 * Source: Majkowski, "Epoll is fundamentally broken" 1/2 and 2/2, 2017; epoll(7), questions and
 * answers.
 * Needs: Linux.
 * Run:   epoll-facts -n 100000 edge
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

#define MAX_WRITES 10000000
#define SOON_MS    20 /* an event that is to come is there at once */
#define PATIENCE   120

/* ---- a registration and its number */

struct facts {
    bool closed_event, delete_ebadf, reused_event;
};

static void add(int epoll_fd, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        die_errno("epoll_ctl ADD");
}

/* Whether an event is reported that bears this number. */
static bool reported(int epoll_fd, int number)
{
    struct epoll_event event;
    int n = epoll_wait(epoll_fd, &event, 1, SOON_MS);
    if (n < 0)
        die_errno("epoll_wait");
    return n == 1 && event.data.fd == number;
}

/* A pipe with a byte in it whose reading end is registered and then closed. `duplicate`: a second
 * descriptor of that end stays open. */
static struct facts close_registered(bool duplicate)
{
    struct facts facts;
    struct epoll_event event = {.events = EPOLLIN};
    int pipes[2], copy = -1, epoll_fd = epoll_create1(EPOLL_CLOEXEC);

    if (epoll_fd < 0 || pipe(pipes) < 0)
        die_errno("epoll_create1, pipe");
    int number = pipes[0];
    add(epoll_fd, number, EPOLLIN);
    if (duplicate && (copy = dup(number)) < 0)
        die_errno("dup");
    if (write(pipes[1], "x", 1) != 1)
        die_errno("write");
    close(number);
    facts.closed_event = reported(epoll_fd, number);
    facts.delete_ebadf = epoll_ctl(epoll_fd, EPOLL_CTL_DEL, number, &event) < 0 && errno == EBADF;
    int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (other != number)
        die(EXIT_FAILURE, "open gave %d, not the lowest number that is free, %d", other, number);
    facts.reused_event = reported(epoll_fd, number);
    close(other);
    if (copy >= 0)
        close(copy);
    close(pipes[1]);
    close(epoll_fd);
    return facts;
}

/* ---- two threads, one stream */

static int shared_epoll, stream;
static bool oneshot;
static _Atomic uint32_t newest; /* the highest number that a thread has seen */
static atomic_size_t out_of_order;
static atomic_bool ended;

/* Reads what is there. */
static void drain(void)
{
    uint32_t number;
    ssize_t n;

    while ((n = recv(stream, &number, sizeof number, MSG_DONTWAIT)) == (ssize_t)sizeof number) {
        uint32_t seen = atomic_load(&newest);
        if (number < seen)
            atomic_fetch_add(&out_of_order, 1);
        while (number > seen && !atomic_compare_exchange_weak(&newest, &seen, number))
            ;
    }
    if (n == 0)
        atomic_store(&ended, true);
    else if (n > 0)
        die(EXIT_FAILURE, "a part of a number");
    else if (errno != EAGAIN)
        die_errno("recv");
}

static void *take_turns(void *nothing)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET | EPOLLONESHOT, .data.fd = stream};

    while (!atomic_load(&ended)) {
        int n = epoll_wait(shared_epoll, &event, 1, SOON_MS);
        if (n < 0 && errno != EINTR)
            die_errno("epoll_wait");
        if (n <= 0)
            continue;
        drain();
        event.events = EPOLLIN | EPOLLET | EPOLLONESHOT;
        event.data.fd = stream;
        if (oneshot && epoll_ctl(shared_epoll, EPOLL_CTL_MOD, stream, &event) < 0)
            die_errno("epoll_ctl MOD");
    }
    return nothing;
}

static size_t two_threads(size_t writes)
{
    pthread_t threads[2];
    int ends[2];

    /* Of packets, so that a read takes one number and never a part of it. */
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
        die_errno("socketpair");
    stream = ends[0];
    shared_epoll = epoll_create1(EPOLL_CLOEXEC);
    if (shared_epoll < 0)
        die_errno("epoll_create1");
    add(shared_epoll, stream, EPOLLIN | EPOLLET | (oneshot ? EPOLLONESHOT : 0));
    for (int i = 0; i < 2; i++)
        if ((errno = pthread_create(&threads[i], NULL, take_turns, NULL)) != 0)
            die_errno("pthread_create");
    for (uint32_t number = 1; number <= writes; number++)
        if (send(ends[1], &number, sizeof number, MSG_NOSIGNAL) != (ssize_t)sizeof number)
            die_errno("send");
    close(ends[1]);
    for (int i = 0; i < 2; i++)
        if ((errno = pthread_join(threads[i], NULL)) != 0)
            die_errno("pthread_join");
    if (atomic_load(&newest) != writes)
        die(EXIT_FAILURE, "the last part was not read");
    return atomic_load(&out_of_order);
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {{'n', "WRITES", 1, MAX_WRITES, 100000, 0}};
    const struct command_line line = {options, 1, "edge|oneshot", 1, 1};
    char **words = read_command_line(argc, argv, &line);

    oneshot = strcmp(words[0], "oneshot") == 0;
    if (!oneshot && strcmp(words[0], "edge") != 0)
        refuse(&line);
    alarm(PATIENCE);
    struct facts with = close_registered(true), without = close_registered(false);
    size_t late = two_threads(options[0].value);
    puts("closed_event\tdelete_ebadf\treused_event\tundup_event\tout_of_order");
    printf("%d\t%d\t%d\t%d\t%lu\n", with.closed_event, with.delete_ebadf, with.reused_event,
           without.closed_event, (unsigned long)late);
    samples_finish();
    return EXIT_SUCCESS;
}
