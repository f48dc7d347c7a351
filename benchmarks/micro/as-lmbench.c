/*
 * as-lmbench: what do some system calls take by the definitions of lmbench 3, so that whoever has
 * lmbench can run it beside this and see whether the two agree?
 *
 * Shows: a line for each batch, the mean of one operation; a batch takes at least 10 ms.
 *   fork          fork(); the child ends at once; waitpid()               lat_proc fork
 *   exec PROGRAM  the same, and the child closes 1 and becomes PROGRAM    lat_proc exec
 *   select        select(), which does not wait, for writing, on copies   lat_select -n 200 tcp
 *                 of one connected socket, 200 or as -d says; as there, the first argument of
 *                 select() is that number, so that the last few are not looked at
 *   mmap FILE     a new file of 4 MiB, or as -m says, is mapped, in the   lat_mmap 4m FILE
 *                 first tenth one byte each 16 KiB is written, and it is unmapped
 *   connect       socket(), SO_REUSEADDR, connect() to 127.0.0.1,         lat_connect localhost
 *                 close(); a child accepts, reads the end and closes. (There it
 *                 has a backlog of 100, and needs a processor of its own)
 * lat_ctx -s 0 2 is sched-switch, handover_ns less pipe_ns.
 * Needs: one processor for all, if the two are to agree: taskset, for both.
 * Run:   taskset -c 0 as-lmbench -n 5 connect
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "micro.h"

#define MAX_SAMPLES 100000
#define BATCH_NS    10000000
#define STRIDE      (16 << 10)
#define FRACTION    10   /* of the file is written */
#define BACKLOG     4096 /* lmbench has 100, and then a connection may wait a second */
#define MIB         ((size_t)1 << 20)

static struct {
    char *argument; /* PROGRAM or FILE */
    size_t bytes;
    int descriptors, fd;
    fd_set set;
    struct sockaddr_in address;
    pid_t server;
} state;

static void child_end(pid_t pid, int status)
{
    int found;
    if (waitpid(pid, &found, 0) == -1)
        die_errno("waitpid");
    if (!WIFEXITED(found) || WEXITSTATUS(found) != status)
        die(EXIT_FAILURE, "a child failed");
}

static void fork_once_more(void)
{
    pid_t pid = fork();
    if (pid == -1)
        die_errno("fork");
    if (pid == 0)
        exit(EXIT_SUCCESS); /* what a program does at its end dirties some pages of the child */
    child_end(pid, EXIT_SUCCESS);
}

static void exec_once_more(void)
{
    pid_t pid = fork();
    if (pid == -1)
        die_errno("fork");
    if (pid == 0) {
        close(STDOUT_FILENO);
        execve(state.argument, (char *[]){state.argument, NULL}, (char *[]){NULL});
        _exit(EXIT_FAILURE);
    }
    child_end(pid, EXIT_SUCCESS);
}

static void select_once_more(void)
{
    fd_set set = state.set;
    struct timeval none = {0, 0};
    if (select(state.descriptors, NULL, &set, NULL, &none) == -1)
        die_errno("select");
}

static void mmap_once_more(void)
{
    char *start = mmap(NULL, state.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, state.fd, 0);
    if (start == MAP_FAILED)
        die_errno("mmap");
    for (volatile char *p = start; p < start + state.bytes / FRACTION; p += STRIDE)
        *p = 1;
    if (munmap(start, state.bytes) == -1)
        die_errno("munmap");
}

static int connect_to_server(void)
{
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
    if (fd == -1 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == -1)
        die_errno("socket");
    if (connect(fd, (struct sockaddr *)&state.address, sizeof state.address) == -1)
        die_errno("connect");
    return fd;
}

static void connect_once_more(void)
{
    if (close(connect_to_server()) == -1)
        die_errno("close");
}

static void server_start(void)
{
    socklen_t size = sizeof state.address;
    pid_t parent = getpid();
    int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
    state.address = (struct sockaddr_in){.sin_family = AF_INET};
    state.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd == -1 || bind(fd, (struct sockaddr *)&state.address, size) == -1 ||
        listen(fd, BACKLOG) == -1 ||
        getsockname(fd, (struct sockaddr *)&state.address, &size) == -1)
        die_errno("a server on 127.0.0.1");
    state.server = fork();
    if (state.server == -1)
        die_errno("fork");
    if (state.server == 0) {
        /* It sleeps in accept(), and must not outlive its parent. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 || getppid() != parent)
            _exit(EXIT_FAILURE);
        for (;;) {
            char byte;
            int connection = accept(fd, NULL, NULL);
            if (connection == -1 || read(connection, &byte, 1) == -1 || close(connection) == -1)
                _exit(EXIT_FAILURE);
        }
    }
    if (close(fd) == -1)
        die_errno("close");
}

static void server_end(void)
{
    int status;
    if (kill(state.server, SIGKILL) == -1 || waitpid(state.server, &status, 0) == -1)
        die_errno("the server");
    if (!WIFSIGNALED(status))
        die(EXIT_FAILURE, "the server failed");
}

static void sockets_make(void)
{
    server_start();
    int connected = connect_to_server();
    FD_ZERO(&state.set);
    for (int i = 0; i < state.descriptors; i++) {
        int fd = dup(connected);
        if (fd == -1)
            die_errno("dup");
        if (fd >= FD_SETSIZE)
            die(EXIT_FAILURE, "descriptor %d is too large for select()", fd);
        FD_SET(fd, &state.set);
    }
}

static void file_make(void)
{
    state.fd = open(state.argument, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (state.fd == -1)
        die_errno("open %s", state.argument);
    if (unlink(state.argument) == -1)
        die_errno("unlink %s", state.argument);
    char *content = samples_new(state.bytes, 1);
    if (write(state.fd, content, state.bytes) != (ssize_t)state.bytes)
        die_errno("write");
    free(content);
}

static const struct operation {
    const char *name;
    int arguments;
    void (*begin)(void), (*once_more)(void), (*end)(void);
} OPERATIONS[] = {
    {"fork", 0, NULL, fork_once_more, NULL},
    {"exec", 1, NULL, exec_once_more, NULL},
    {"select", 0, sockets_make, select_once_more, server_end},
    {"mmap", 1, file_make, mmap_once_more, NULL},
    {"connect", 0, server_start, connect_once_more, server_end},
};

static const struct operation *operation_of(char **words)
{
    for (size_t i = 0; i < sizeof OPERATIONS / sizeof *OPERATIONS; i++)
        if (strcmp(words[0], OPERATIONS[i].name) == 0 &&
            (words[1] != NULL) == OPERATIONS[i].arguments)
            return &OPERATIONS[i];
    return NULL;
}

static uint64_t batch_ns(const struct operation *operation, uint64_t count)
{
    uint64_t start = now_ns();
    for (uint64_t i = 0; i < count; i++)
        operation->once_more();
    return now_ns() - start;
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "SAMPLES", 1, MAX_SAMPLES, 11, 0},
        {'d', "DESCRIPTORS", 1, FD_SETSIZE, 200, 0},
        {'m', "MIB", 1, 1024, 4, 0},
    };
    const struct command_line line = {options, 3, "fork|exec PROGRAM|select|mmap NEW_FILE|connect",
                                      1, 2};
    char **words = read_command_line(argc, argv, &line);
    const struct operation *operation = operation_of(words);
    if (operation == NULL)
        refuse(&line);
    state.argument = words[1];
    state.descriptors = (int)options[1].value;
    state.bytes = options[2].value * MIB;
    size_t samples = options[0].value;
    double *op_ns = samples_new(samples, sizeof *op_ns);
    children_signals();
    if (operation->begin)
        operation->begin();
    uint64_t count = 1;
    while (batch_ns(operation, count) < BATCH_NS)
        count *= 2;
    for (size_t i = 0; i < samples; i++)
        op_ns[i] = (double)batch_ns(operation, count) / (double)count;
    if (operation->end)
        operation->end();

    puts("op_ns");
    for (size_t i = 0; i < samples; i++)
        printf("%.1f\n", op_ns[i]);
    samples_finish();
    free(op_ns);
    return EXIT_SUCCESS;
}
