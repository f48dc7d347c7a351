/*
 * resolver: can the C library resolve a name when all low descriptors are taken?
 *
 * A name server of ours, a child on a port of 127.0.0.1, gives every name the address 127.0.0.1.
 * The process opens descriptors until DESCRIPTORS are, and asks for a name SAMPLES times. The
 * resolver makes a socket for each question (dietlibc's: for the first), which gets the lowest
 * number that is free.
 * Shows: that number, whether there was an answer, and how long it took. A resolver that waits with
 * select() can hear nothing on a socket whose number is FD_SETSIZE (1024) or more.
 * Needs: glibc or dietlibc, whose resolvers can be told the server and its port.
 * Run:   resolver -n 3 -d 2000
 */
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <resolv.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "micro.h"

#define MAX_SAMPLES     100000
#define MAX_DESCRIPTORS 1000000
#define NAME            "good.web.server.test"
#define HEADER          12
#define ANSWER          "\xc0\x0c\0\x01\0\x01\0\0\0\0\0\x04\x7f\0\0\x01" /* its name is at 12 */
#define ANSWER_SIZE     (sizeof ANSWER - 1)
#define PATIENCE        300 /* seconds for the whole run */

struct sample {
    int socket, answered;
    uint64_t ns;
};

/* RFC 1035, 4.1: the question goes back as it came, with one address behind it. */
static void reply(int fd)
{
    unsigned char message[NS_PACKETSZ + ANSWER_SIZE];
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    ssize_t n = recvfrom(fd, message, NS_PACKETSZ, 0, (struct sockaddr *)&from, &size);
    if (n < HEADER)
        _exit(EXIT_FAILURE);
    message[2] |= 0x80; /* it is a reply */
    message[7] = 1;     /* answers */
    memcpy(message + n, ANSWER, ANSWER_SIZE);
    if (sendto(fd, message, (size_t)n + ANSWER_SIZE, 0, (struct sockaddr *)&from, size) == -1)
        _exit(EXIT_FAILURE);
}

/* Until the parent ends, however it does. */
static _Noreturn void name_server(int fd, const struct children *children)
{
    struct pollfd wanted[2] = {{.fd = fd, .events = POLLIN},
                               {.fd = children->life[0], .events = POLLIN}};
    if (close(children->life[1]) == -1)
        _exit(EXIT_FAILURE);
    while (wanted[1].revents == 0) {
        if (poll(wanted, 2, -1) == -1 && errno != EINTR)
            _exit(EXIT_FAILURE);
        if (wanted[0].revents & POLLIN)
            reply(fd);
    }
    _exit(EXIT_SUCCESS);
}

/* Starts it, and makes it the only one that the resolver of this process knows. */
static void name_server_start(const struct children *children)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd == -1 || bind(fd, (struct sockaddr *)&address, size) == -1 ||
        getsockname(fd, (struct sockaddr *)&address, &size) == -1)
        die_errno("a name server on 127.0.0.1");
    pid_t pid = fork();
    if (pid == 0)
        name_server(fd, children);
    if (pid == -1)
        die_errno("fork");
    if (close(fd) == -1)
        die_errno("close");
    if (res_init() == -1)
        die_errno("res_init");
    _res.nscount = 1;
    memcpy(&_res.nsaddr_list[0], &address, sizeof address); /* dietlibc has a type of its own */
    _res.retrans = _res.retry = 1;                          /* a second, and once */
}

static int lowest_free(void)
{
    int fd = dup(STDOUT_FILENO);
    if (fd == -1)
        die_errno("dup");
    if (close(fd) == -1)
        die_errno("close");
    return fd;
}

/* Descriptors of what is open already, until so many are. */
static void open_descriptors(int count)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == -1)
        die_errno("getrlimit");
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == -1)
        die_errno("setrlimit");
    while (lowest_free() < count)
        if (dup(STDOUT_FILENO) == -1)
            die_errno("dup");
}

static void ask(struct sample *sample)
{
    unsigned char answer[NS_PACKETSZ];
    sample->socket = lowest_free();
    uint64_t start = now_ns();
    int size = res_query(NAME, ns_c_in, ns_t_a, answer, sizeof answer);
    sample->ns = now_ns() - start;
    sample->answered = size > HEADER && answer[7] == 1;
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 10, 0},
        {'d', "DESCRIPTORS", 0, MAX_DESCRIPTORS, 0, 0},
    };
    read_command_line(argc, argv, &(struct command_line){options, 2, "", 0, 0});
    size_t count = options[0].value;
    struct sample *samples = samples_new(count, sizeof *samples);
    struct children children;
    children_open(&children, PATIENCE);
    name_server_start(&children);
    open_descriptors((int)options[1].value);
    for (size_t i = 0; i < count; i++)
        ask(&samples[i]);
    children_end(&children, 1);

    puts("descriptors\tsocket\tanswered\task_ns");
    for (size_t i = 0; i < count; i++)
        printf("%lu\t%d\t%d\t%llu\n", (unsigned long)options[1].value, samples[i].socket,
               samples[i].answered, (unsigned long long)samples[i].ns);
    samples_finish();
    free(samples);
    return EXIT_SUCCESS;
}
