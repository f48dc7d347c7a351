/*
 * event-wait: what does it cost to learn which of many sockets can be read?
 *
 * ACTIVE sockets get a message, beside IDLE ones that get none. They are waited for in one of these
 * ways:
 *   select, poll    the set is given anew with each call
 *   sigio           a real-time signal for each event (F_SETSIG), taken with sigtimedwait()
 *   sigio-handler   the same, taken by a signal handler
 *   sigio-signalfd  the same, read from a descriptor
 *   epoll, epoll-edge, epoll-one   by level; by edge; by level with one event a call
 *   kqueue          by level; on Linux that of 10-kqueue, made of epoll
 * Shows: a line a sample, of ACTIVE events. wait_ns: from the call until the last of them is known
 * by its descriptor, re-arming included. Divided by ACTIVE: event_ns, the same; calls, its system
 * calls; send_ns, the send() that made the socket readable, in which the kernel queues the event
 * where somebody has asked for it; read_ns, reading the message.
 * The events are there before the wait begins: nobody sleeps. Linux's select and poll enter
 * themselves at each socket all the same, until they find the first one that is ready, so it
 * matters where that stands. The active ones stand at equal distances; if they are few, others are
 * active with each sample.
 * Needs: a descriptor for each socket, and one more for each that can be active (ulimit -n); for
 * signals a queue with room for ACTIVE (ulimit -i).
 * Run:   event-wait -i 5000 -a 1 poll
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"
#include "wait_ways.h"

#define MAX_SAMPLES  100000
#define MAX_IDLE     1000000
#define MAX_ACTIVE   1000 /* one call can tell of more */
#define PLACES       8    /* sockets that can be active, or more */
#define STEP_PERCENT 62   /* of the places, from a sample to the next: the golden section */
#define WARM_UP      8    /* waits before the first sample, so that each has been active once */

struct sample {
    uint64_t send_ns;
    uint64_t wait_ns;
    uint64_t read_ns;
    size_t calls;
};

struct sockets {
    int *fds; /* all that are waited for */
    size_t count;
    int (*pairs)[2]; /* those among them that can get messages, with their peers */
    size_t pair_count;
    size_t active;  /* of the pairs, how many get one for a sample ... */
    size_t first;   /* ... from this one on, at equal steps */
    bool *expected; /* by descriptor: its event has not been seen yet */
    int highest;
};

/* Whether the i-th of count sockets is one of `wanted` at equal distances. */
static bool is_chosen(size_t i, size_t count, size_t wanted)
{
    return (i + 1) * wanted / count > i * wanted / count;
}

/* A socket without a peer has no name either: nothing can come. */
static void sockets_open(struct sockets *s, size_t idle, size_t active)
{
    size_t wanted = active > PLACES ? active : PLACES;
    *s = (struct sockets){.count = idle + active, .active = active};
    wanted = wanted < s->count ? wanted : s->count;
    s->fds = samples_new(s->count, sizeof *s->fds);
    s->pairs = samples_new(wanted, sizeof *s->pairs);
    for (size_t i = 0; i < s->count; i++) {
        if (is_chosen(i, s->count, wanted)) {
            int *pair = s->pairs[s->pair_count++];
            if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == -1)
                die_errno("socketpair");
            s->fds[i] = pair[0];
        } else {
            s->fds[i] = socket(AF_UNIX, SOCK_DGRAM, 0);
            if (s->fds[i] == -1)
                die_errno("socket");
        }
        if (s->fds[i] > s->highest)
            s->highest = s->fds[i];
    }
    s->expected = samples_new((size_t)s->highest + 1, sizeof *s->expected);
}

static void sockets_close(struct sockets *s)
{
    for (size_t i = 0; i < s->count; i++)
        close(s->fds[i]);
    for (size_t i = 0; i < s->pair_count; i++)
        close(s->pairs[i][1]);
    free(s->fds);
    free(s->pairs);
    free(s->expected);
}

/* Of the sockets that are active now, the i-th. */
static const int *active_pair(const struct sockets *s, size_t i)
{
    return s->pairs[(s->first + i * s->pair_count / s->active) % s->pair_count];
}

/* Far from where they were, and all places have their turn. */
static void move_on(struct sockets *s)
{
    s->first = (s->first + (s->pair_count * STEP_PERCENT + 99) / 100) % s->pair_count;
}

static void send_all(struct sockets *s)
{
    for (size_t i = 0; i < s->active; i++) {
        const int *pair = active_pair(s, i);
        if (send(pair[1], "", 1, 0) != 1)
            die_errno("send");
        s->expected[pair[0]] = true;
    }
}

static void read_all(const struct sockets *s)
{
    char byte;
    for (size_t i = 0; i < s->active; i++)
        if (recv(active_pair(s, i)[0], &byte, 1, MSG_DONTWAIT) != 1)
            die_errno("recv");
}

/* Each event once, and no other: a way that loses one must not look fast. */
static void check(struct sockets *s, const int *ready, size_t count)
{
    if (count < s->active)
        die(EXIT_FAILURE, "%lu of %lu events came", (unsigned long)count, (unsigned long)s->active);
    for (size_t i = 0; i < count; i++) {
        if (ready[i] < 0 || ready[i] > s->highest || !s->expected[ready[i]])
            die(EXIT_FAILURE, "an event for descriptor %d, where there is none", ready[i]);
        s->expected[ready[i]] = false;
    }
}

static struct sample measure(const struct wait_way *way, struct sockets *s, int *ready)
{
    struct sample sample = {.calls = 0};
    size_t found = 0, n;
    uint64_t start = now_ns();
    send_all(s);
    uint64_t sent = now_ns();
    do {
        n = way->wait(ready + found, s->active - found, &sample.calls);
        found += n;
    } while (n > 0 && found < s->active);
    uint64_t known = now_ns();
    check(s, ready, found);
    uint64_t checked = now_ns();
    read_all(s);
    sample.read_ns = now_ns() - checked;
    sample.wait_ns = known - sent;
    sample.send_ns = sent - start;
    move_on(s);
    return sample;
}

static void print_samples(const struct sample *sample, size_t count, size_t active)
{
    const double each = (double)active;
    puts("wait_ns\tevent_ns\tcalls\tsend_ns\tread_ns");
    for (const struct sample *s = sample; s < sample + count; s++)
        printf("%llu\t%.1f\t%.4f\t%.1f\t%.1f\n", (unsigned long long)s->wait_ns,
               (double)s->wait_ns / each, (double)s->calls / each, (double)s->send_ns / each,
               (double)s->read_ns / each);
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 20, 0},
        {'i', "IDLE", 0, MAX_IDLE, 100, 0},
        {'a', "ACTIVE", 1, MAX_ACTIVE, 1, 0},
    };
    const struct command_line line = {options, 3, "WAY", 1, 1};
    char **words = read_command_line(argc, argv, &line);
    size_t count = options[0].value, active = options[2].value;
    struct sockets sockets;

    const struct wait_way *way = wait_way_named(words[0]);
    if (way == NULL)
        die(EXIT_UNSUPPORTED, "%s: there is no such way to wait here", words[0]);
    sockets_open(&sockets, options[1].value, active);
    way->open(sockets.fds, sockets.count);
    int *ready = samples_new(active, sizeof *ready);
    struct sample *samples = samples_new(count, sizeof *samples);
    for (int i = 0; i < WARM_UP; i++)
        measure(way, &sockets, ready);
    for (size_t i = 0; i < count; i++)
        samples[i] = measure(way, &sockets, ready);
    print_samples(samples, count, active);
    free(samples);
    free(ready);
    sockets_close(&sockets);
    return EXIT_SUCCESS;
}
