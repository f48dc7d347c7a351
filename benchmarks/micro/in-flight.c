/*
 * in-flight: is what has been sent a copy of the file, or the file?
 *
 * A file of x is sent over a TCP connection of loopback, and when all of it has come to the other
 * end, but has not been read there, the file is overwritten with y. Then it is read.
 * Shows: a line has how many bytes were sent, and how many of them were y. A way that copies the
 * bytes on their way to the socket gives 0; one that queues the pages of the file gives all.
 * Run:   in-flight -n 10 -p 20000 sendfile
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

#ifdef __linux__
#include <fcntl.h>
#include <sys/sendfile.h>
#endif

/* Sends `size` bytes of the file, from its beginning. Returns how many, or -1 with errno. */
typedef ssize_t send_fn(int socket_fd, int file_fd, size_t size);

#define MAX_SAMPLES 100000
#define MAX_SIZE    32768 /* fits into a pipe and into every socket's buffer */
#define PATIENCE    60    /* seconds for the whole run */

static char buffer[MAX_SIZE];

static ssize_t by_read(int socket_fd, int file_fd, size_t size)
{
    ssize_t n = pread(file_fd, buffer, size, 0);
    return n <= 0 ? n : send(socket_fd, buffer, (size_t)n, 0);
}

static ssize_t by_mmap(int socket_fd, int file_fd, size_t size)
{
    char *at = mmap(NULL, size, PROT_READ, MAP_SHARED, file_fd, 0);
    if (at == MAP_FAILED)
        die_errno("mmap");
    ssize_t n = send(socket_fd, at, size, 0);
    munmap(at, size);
    return n;
}

#ifdef __linux__
static ssize_t by_sendfile(int socket_fd, int file_fd, size_t size)
{
    off_t offset = 0;
    return sendfile(socket_fd, file_fd, &offset, size);
}

/* Of what fits into a pipe, which in-flight sees to. */
static ssize_t by_splice(int socket_fd, int file_fd, size_t size)
{
    int ends[2];
    loff_t offset = 0;
    if (pipe(ends) == -1)
        die_errno("pipe");
    ssize_t n = splice(file_fd, &offset, ends[1], NULL, size, 0);
    if (n > 0)
        n = splice(ends[0], NULL, socket_fd, NULL, (size_t)n, 0);
    close(ends[0]);
    close(ends[1]);
    return n;
}
#endif

/* NULL if there is none of that name, or this system does not have it. */
static send_fn *way_of(const char *name)
{
    if (strcmp(name, "read") == 0)
        return by_read;
    if (strcmp(name, "mmap") == 0)
        return by_mmap;
#ifdef __linux__
    if (strcmp(name, "sendfile") == 0)
        return by_sendfile;
    if (strcmp(name, "splice") == 0)
        return by_splice;
#endif
    return NULL;
}

static void connect_pair(int *sender, int *receiver)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int listen_fd = socket(AF_INET, SOCK_STREAM, 0);
    *receiver = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listen_fd == -1 || *receiver == -1)
        die_errno("socket");
    if (bind(listen_fd, (const struct sockaddr *)&address, sizeof address) == -1)
        die_errno("bind");
    if (listen(listen_fd, 1) == -1)
        die_errno("listen");
    if (getsockname(listen_fd, (struct sockaddr *)&address, &size) == -1)
        die_errno("getsockname");
    if (connect(*receiver, (const struct sockaddr *)&address, sizeof address) == -1)
        die_errno("connect");
    *sender = accept(listen_fd, NULL, NULL);
    if (*sender == -1)
        die_errno("accept");
    close(listen_fd);
}

static void fill(int file_fd, char with, size_t size)
{
    memset(buffer, with, size);
    if (pwrite(file_fd, buffer, size, 0) != (ssize_t)size)
        die_errno("pwrite");
}

static void receive(int fd, size_t size, int flags)
{
    if (recv(fd, buffer, size, MSG_WAITALL | flags) != (ssize_t)size)
        die_errno("recv");
}

static size_t changed_of(size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += buffer[i] == 'y';
    return count;
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 10, 0},
        {'p', "BYTES", 1, MAX_SIZE, 20000, 0},
    };
    const struct command_line line = {options, 2, "read|mmap|sendfile|splice", 1, 1};
    char **words = read_command_line(argc, argv, &line);
    size_t size = options[1].value;
    int sender, receiver;
    send_fn *way = way_of(words[0]);
    if (way == NULL && (strcmp(words[0], "sendfile") == 0 || strcmp(words[0], "splice") == 0))
        die(EXIT_UNSUPPORTED, "this system has no %s of Linux's kind", words[0]);
    if (way == NULL)
        refuse(&line);
    FILE *file = tmpfile();
    if (file == NULL)
        die_errno("tmpfile");
    alarm(PATIENCE);
    connect_pair(&sender, &receiver);

    puts("sent\tchanged");
    for (size_t i = 0; i < options[0].value; i++) {
        fill(fileno(file), 'x', size);
        ssize_t n = way(sender, fileno(file), size);
        if (n == -1)
            die_errno("%s", words[0]);
        receive(receiver, (size_t)n, MSG_PEEK);
        fill(fileno(file), 'y', size);
        receive(receiver, (size_t)n, 0);
        printf("%zd\t%zu\n", n, changed_of((size_t)n));
    }
    samples_finish();
    return EXIT_SUCCESS;
}
