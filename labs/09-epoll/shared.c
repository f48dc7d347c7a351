/*
 * shared.c: two workers, each with a client of its own, and each waits for its client by epoll.
 * The second client sends a byte, the first one does not. Which worker is told?
 *
 * No arguments. Exit status 0: only the second worker is told. Sources: epoll(7), fork(2).
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "die.h"

/* A client of the process that calls. Returns its descriptor; *client is the client's own end. */
static int take_client(int epoll_fd, int *client)
{
    struct epoll_event event = {.events = EPOLLIN};
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        die_errno("socketpair");
    event.data.fd = ends[0];
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ends[0], &event) < 0)
        die_errno("epoll_ctl");
    *client = ends[1];
    return ends[0];
}

/* Its client sends a byte. Tells the first worker so, and stays until that one has looked. */
static _Noreturn void second_worker(int epoll_fd, const int *workers)
{
    struct epoll_event event;
    int client, fd = take_client(epoll_fd, &client);
    char byte = 'x';

    close(workers[0]);
    if (write(client, &byte, 1) != 1 || write(workers[1], &byte, 1) != 1)
        die_errno("write");
    bool told = epoll_wait(epoll_fd, &event, 1, 0) == 1 && event.data.fd == fd;
    if (read(workers[1], &byte, 1) < 0)
        die_errno("read");
    _exit(told ? EXIT_SUCCESS : EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    struct epoll_event event;
    int workers[2], client, status;
    char byte;

    set_program_name(argc > 0 ? argv[0] : "shared");
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, workers) < 0)
        die_errno("socketpair");
    pid_t pid = fork();
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (pid < 0 || epoll_fd < 0)
        die_errno("set-up");
    if (pid == 0)
        second_worker(epoll_fd, workers);
    int fd = take_client(epoll_fd, &client);
    close(workers[1]);
    bool begun = read(workers[0], &byte, 1) == 1;
    bool told = epoll_wait(epoll_fd, &event, 1, 0) > 0;
    close(workers[0]);
    bool second = waitpid(pid, &status, 0) == pid && begun && status == 0;
    printf("the second worker was %stold of its client\n", second ? "" : "not ");
    if (told)
        printf("the first was told that %d can be read; its own silent client is %d\n",
               event.data.fd, fd);
    return second && !told ? EXIT_SUCCESS : EXIT_FAILURE;
}
