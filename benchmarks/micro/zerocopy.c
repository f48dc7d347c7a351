/*
 * zerocopy: does the kernel copy what is sent with MSG_ZEROCOPY over loopback?
 *
 * A process sends SENDS times BYTES to another one over a TCP connection of loopback, and reads
 * from the error queue what became of each send.
 * Shows: one line. sends: the calls; completed: those that were reported; copied: of these, those
 * with the code that says that the kernel has copied the data all the same; copied_share, of 1;
 * send_ns: mean time of a send() that was accepted.
 * Source: Documentation/networking/msg_zerocopy.rst, "Loopback" and "Notification".
 * Needs: Linux 4.14.
 * Run:   zerocopy -n 100 -s 65536
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

#define MAX_SENDS 100000
#define MAX_BYTES (1 << 20)
#define PATIENCE  120 /* seconds for the whole run */

struct seen {
    size_t completed, copied;
};

/* The child's whole life: it reads until the sender has closed. */
static _Noreturn void read_all(int listen_fd)
{
    static char buffer[MAX_BYTES];
    ssize_t n;

    alarm(PATIENCE);
    int fd = accept(listen_fd, NULL, NULL);
    if (fd < 0)
        _exit(EXIT_FAILURE);
    while ((n = recv(fd, buffer, sizeof buffer, 0)) > 0)
        ;
    _exit(n == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* One report is of a range of sends. */
static void note(const struct sock_extended_err *error, struct seen *seen)
{
    if (error->ee_errno != 0 || error->ee_origin != SO_EE_ORIGIN_ZEROCOPY)
        die(EXIT_FAILURE, "an error, and no completion, of origin %d", error->ee_origin);
    size_t sends = (size_t)(uint32_t)(error->ee_data - error->ee_info) + 1;
    seen->completed += sends;
    if ((error->ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0)
        seen->copied += sends;
}

/* Reads what the error queue has; with `wait` until there is something. */
static void read_completions(int fd, bool wait, struct seen *seen)
{
    union {
        char bytes[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in))];
        struct cmsghdr aligned;
    } control;
    struct pollfd polled = {.fd = fd, .events = 0}; /* POLLERR is always reported */

    if (wait && poll(&polled, 1, PATIENCE * 1000) < 0)
        die_errno("poll");
    for (;;) {
        struct msghdr message = {.msg_control = &control, .msg_controllen = sizeof control};
        if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
            if (errno == EAGAIN)
                return;
            die_errno("recvmsg MSG_ERRQUEUE");
        }
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL; c = CMSG_NXTHDR(&message, c))
            if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR)
                note((const struct sock_extended_err *)(const void *)CMSG_DATA(c), seen);
    }
}

/* Sends `bytes` bytes, after so many calls before; returns how many calls it took. */
static size_t send_all(int fd, const char *data, size_t bytes, size_t before, struct seen *seen,
                       uint64_t *took)
{
    size_t calls = 0;

    for (size_t at = 0; at < bytes;) {
        uint64_t start = now_ns();
        ssize_t n = send(fd, data + at, bytes - at, MSG_ZEROCOPY | MSG_NOSIGNAL);
        if (n < 0 && errno == ENOBUFS) { /* completions to read, or no pages that may be locked */
            if (seen->completed == before + calls)
                die_errno("send MSG_ZEROCOPY (ulimit -l, net.core.optmem_max)");
            read_completions(fd, true, seen);
            continue;
        }
        if (n < 0)
            die_errno("send MSG_ZEROCOPY");
        *took += now_ns() - start;
        at += (size_t)n;
        calls++;
    }
    return calls;
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SENDS", 1, MAX_SENDS, 100, 0},
        {'s', "BYTES", 1, MAX_BYTES, 65536, 0},
    };
    const struct command_line line = {options, 2, "", 0, 0};
    static char data[MAX_BYTES];
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    struct seen seen = {0, 0};
    size_t calls = 0;
    uint64_t took = 0;
    const int on = 1;
    int status;

    read_command_line(argc, argv, &line);
    alarm(PATIENCE);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listen_fd < 0 || bind(listen_fd, (struct sockaddr *)&at, size) < 0)
        die_errno("bind");
    if (listen(listen_fd, 1) < 0 || getsockname(listen_fd, (struct sockaddr *)&at, &size) < 0)
        die_errno("listen");
    signal(SIGCHLD, SIG_DFL); /* were it ignored, nobody could wait for a child */
    pid_t child = fork();
    if (child < 0)
        die_errno("fork");
    if (child == 0)
        read_all(listen_fd);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, size) < 0)
        die_errno("connect");
    if (setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) < 0)
        die(EXIT_UNSUPPORTED, "SO_ZEROCOPY: %s", strerror(errno));
    memset(data, 'x', sizeof data);
    for (size_t i = 0; i < options[0].value; i++) {
        calls += send_all(fd, data, options[1].value, calls, &seen, &took);
        read_completions(fd, false, &seen);
    }
    while (seen.completed < calls)
        read_completions(fd, true, &seen);
    close(fd);
    if (waitpid(child, &status, 0) < 0)
        die_errno("waitpid");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
        die(EXIT_FAILURE, "the reader has failed");
    puts("sends\tcompleted\tcopied\tcopied_share\tsend_ns");
    printf("%lu\t%lu\t%lu\t%.4f\t%llu\n", (unsigned long)calls, (unsigned long)seen.completed,
           (unsigned long)seen.copied, (double)seen.copied / (double)seen.completed,
           (unsigned long long)(took / calls));
    samples_finish();
    return EXIT_SUCCESS;
}
