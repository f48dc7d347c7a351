/*
 * event-rate: are events lost when nobody waits for them in time?
 *
 * A second process sends MESSAGES messages at RATE a second, each to one of SOCKETS sockets, chosen
 * at random. We wait for them, in a way of event-wait that sleeps until there is one (not with a
 * handler or signalfd), read what is there, and rest for DELAY microseconds before we wait again: a
 * slow wait, or a slow server.
 * Shows: one line. waits; events_per_wait, the sockets that one wait told of; messages_per_wait;
 * lost, messages that did not come within the time-out of a wait; rate, messages read a second, to
 * the end of the last wait, so with a long DELAY and few messages some per cent less than was sent.
 * A socket whose queue is full stops its sender: then the rate falls, and still nothing is lost.
 * Needs: two descriptors a socket.
 * Run:   event-rate -n 4000 -s 1000 -r 20000 -d 1000 poll
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "micro.h"
#include "wait_ways.h"

#define MAX_SOCKETS  10000
#define MAX_RATE     1000000
#define MAX_MESSAGES 10000000
#define MAX_DELAY    1000000
#define NS_PER_S     1000000000U
#define PATIENCE     60 /* seconds for the sender */

struct pairs {
    int *ours;
    int *peers;
    size_t count;
};

struct seen {
    size_t waits;
    size_t events;
    size_t messages;
    uint64_t ns; /* from the first message to the last */
};

static struct pairs pairs_open(size_t count)
{
    struct pairs p = {samples_new(count, sizeof *p.ours), samples_new(count, sizeof *p.peers),
                      count};
    int pair[2];
    for (size_t i = 0; i < count; i++) {
        if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == -1)
            die_errno("socketpair");
        p.ours[i] = pair[0];
        p.peers[i] = pair[1];
    }
    return p;
}

static void rest(uint64_t ns)
{
    struct timespec left = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    while (nanosleep(&left, &left) == -1)
        if (errno != EINTR)
            die_errno("nanosleep");
}

/*
 * The child's whole life. It sends what is due, and sleeps until more is; send() fails when the one
 * who reads is gone.
 */
static _Noreturn void send_messages(const struct pairs *p, size_t messages, size_t rate)
{
    uint64_t random = 0x9e3779b97f4a7c15; /* xorshift64 */
    uint64_t start, due;
    alarm(PATIENCE);
    for (size_t i = 0; i < p->count; i++)
        close(p->ours[i]);
    start = now_ns();
    for (size_t sent = 0; sent < messages; sent++) {
        due = start + sent * NS_PER_S / rate;
        for (uint64_t now = now_ns(); now < due; now = now_ns())
            rest(due - now);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if (send(p->peers[random % p->count], "", 1, 0) != 1)
            _exit(EXIT_FAILURE);
    }
    _exit(EXIT_SUCCESS);
}

/* All that is there: an edge will not tell of it again. */
static size_t read_messages(int fd)
{
    size_t count = 0;
    char byte;
    while (recv(fd, &byte, 1, MSG_DONTWAIT) == 1)
        count++;
    if (errno != EAGAIN && errno != ECONNRESET)
        die_errno("recv");
    return count;
}

static struct seen receive(const struct wait_way *way, const struct pairs *p, size_t messages,
                           uint64_t delay)
{
    struct seen seen = {.waits = 0};
    int *ready = samples_new(p->count, sizeof *ready);
    uint64_t first = 0;
    while (seen.messages < messages) {
        size_t calls = 0;
        size_t n = way->wait(ready, p->count, &calls);
        if (n == 0)
            break;
        if (first == 0)
            first = now_ns();
        for (size_t i = 0; i < n; i++)
            seen.messages += read_messages(ready[i]);
        seen.events += n;
        seen.waits++;
        seen.ns = now_ns() - first;
        if (delay > 0)
            rest(delay);
    }
    free(ready);
    return seen;
}

static void print_sample(const struct seen *s, size_t messages)
{
    const double waits = s->waits > 0 ? (double)s->waits : 1;
    puts("waits\tevents_per_wait\tmessages_per_wait\tlost\trate");
    printf("%lu\t%.2f\t%.2f\t%lu\t%.1f\n", (unsigned long)s->waits, (double)s->events / waits,
           (double)s->messages / waits, (unsigned long)(messages - s->messages),
           (double)s->messages * NS_PER_S / (double)(s->ns > 0 ? s->ns : 1));
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "MESSAGES", 2, MAX_MESSAGES, 4000, 0},
        {'s', "SOCKETS", 1, MAX_SOCKETS, 100, 0},
        {'r', "RATE", 1, MAX_RATE, 20000, 0},
        {'d', "DELAY", 0, MAX_DELAY, 0, 0},
    };
    char **words = read_command_line(argc, argv, &(struct command_line){options, 4, "WAY", 1, 1});
    size_t messages = options[0].value, rate = options[2].value;
    int status;

    const struct wait_way *way = wait_way_named(words[0]);
    if (way == NULL)
        die(EXIT_UNSUPPORTED, "%s: there is no such way to wait here", words[0]);
    /* These return at once while there is nothing; below, that would look like the time-out. */
    if (strncmp(words[0], "sigio-", 6) == 0)
        die(EXIT_USAGE, "%s: that way does not sleep until there is a message", words[0]);
    children_signals();
    struct pairs pairs = pairs_open(options[1].value);
    way->open(pairs.ours, pairs.count);
    pid_t sender = fork();
    if (sender == -1)
        die_errno("fork");
    if (sender == 0)
        send_messages(&pairs, messages, rate);
    struct seen seen = receive(way, &pairs, messages, options[3].value * 1000);
    if (waitpid(sender, &status, 0) == -1)
        die_errno("waitpid");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
        die(EXIT_FAILURE, "the sender has failed");
    print_sample(&seen, messages);
    free(pairs.ours);
    free(pairs.peers);
    return EXIT_SUCCESS;
}
