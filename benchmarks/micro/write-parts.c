/*
 * write-parts: what does it cost to write a head and a body that lie in two places?
 *
 * A sample is the time of two writes, of one writev(), or of a copy to one place and one write,
 * into a pipe, a Unix socket or a file. The bytes are taken out again outside of the time. (Over
 * TCP the question is another one, how many packets become of it: the experiment send-packets.)
 * Run:   write-parts -n 1000 -p 500 two pipe
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

#define MAX_SAMPLES 1000000
#define HEAD_SIZE   190
#define MAX_BODY    8000 /* with the head it fits into a pipe on every system */

static char head[HEAD_SIZE], body[MAX_BODY], place[HEAD_SIZE + MAX_BODY];
static size_t body_size;

struct target {
    const char *name;
    int in, out; /* what is written to, and what is read from */
};

static void wrote(ssize_t n, size_t size)
{
    if (n == -1)
        die_errno("write");
    if ((size_t)n != size)
        die(EXIT_FAILURE, "only %zd of %zu bytes were written", n, size);
}

static void write_two(int fd)
{
    wrote(write(fd, head, sizeof head), sizeof head);
    wrote(write(fd, body, body_size), body_size);
}

static void write_copy(int fd)
{
    memcpy(place, head, sizeof head);
    memcpy(place + sizeof head, body, body_size);
    wrote(write(fd, place, sizeof head + body_size), sizeof head + body_size);
}

static void write_vector(int fd)
{
    struct iovec parts[2] = {{head, sizeof head}, {body, body_size}};
    wrote(writev(fd, parts, 2), sizeof head + body_size);
}

typedef void write_fn(int fd);

static write_fn *way_of(const char *name)
{
    return strcmp(name, "two") == 0      ? write_two
           : strcmp(name, "copy") == 0   ? write_copy
           : strcmp(name, "writev") == 0 ? write_vector
                                         : NULL;
}

static bool open_target(struct target *t)
{
    int ends[2];
    if (strcmp(t->name, "file") == 0) {
        FILE *file = tmpfile();
        if (file == NULL)
            die_errno("tmpfile");
        t->in = t->out = fileno(file);
        return true;
    }
    if (strcmp(t->name, "pipe") == 0) {
        if (pipe(ends) == -1)
            die_errno("pipe");
    } else if (strcmp(t->name, "unix") == 0) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == -1)
            die_errno("socketpair");
    } else {
        return false;
    }
    t->out = ends[0];
    t->in = ends[1];
    return true;
}

/* So that the next sample finds what this one found. */
static void take_out(const struct target *t)
{
    size_t left = sizeof head + body_size;
    if (t->in == t->out) {
        if (lseek(t->in, 0, SEEK_SET) == -1)
            die_errno("lseek");
        return;
    }
    while (left > 0) {
        ssize_t n = read(t->out, place, left);
        if (n <= 0)
            die_errno("read");
        left -= (size_t)n;
    }
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 1000, 0},
        {'p', "BODY_BYTES", 1, MAX_BODY, 500, 0},
    };
    const struct command_line line = {options, 2, "two|copy|writev pipe|unix|file", 2, 2};
    char **words = read_command_line(argc, argv, &line);
    struct target target = {.name = words[1]};
    write_fn *way = way_of(words[0]);
    if (way == NULL || !open_target(&target))
        refuse(&line);
    size_t count = options[0].value;
    uint64_t *ns = samples_new(count, sizeof *ns);
    body_size = options[1].value;

    for (size_t i = 0; i < count; i++) {
        uint64_t start = now_ns();
        way(target.in);
        ns[i] = now_ns() - start;
        take_out(&target);
    }
    puts("write_ns");
    for (size_t i = 0; i < count; i++)
        printf("%llu\n", (unsigned long long)ns[i]);
    samples_finish();
    free(ns);
    return EXIT_SUCCESS;
}
