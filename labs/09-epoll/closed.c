/*
 * closed.c: an event loop hands a client over to a helper process, and then closes its own
 * descriptor of it. After that the client sends bytes. How often is the loop told of them?
 *
 * No arguments. Exit status 0: never, and the helper still has it. Sources: epoll(7), close(2).
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "die.h"

#define LOOKS 1000

static int epoll_fd;

/* The helper inherits the connection; a real one would read from it. */
static pid_t start_helper(int client)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    close(client);
    alarm(10); /* in case its parent dies first */
    for (;;)
        pause();
}

static void forget(int fd)
{
    if (epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL) < 0)
        die_errno("epoll_ctl");
    close(fd);
}

static int times_told(void)
{
    struct epoll_event event;
    int told = 0;

    for (int i = 0; i < LOOKS; i++) {
        int nready = epoll_wait(epoll_fd, &event, 1, 0);
        if (nready < 0 && errno != EINTR)
            die_errno("epoll_wait");
        told += nready > 0;
    }
    return told;
}

int main(int argc, char **argv)
{
    struct epoll_event event = {.events = EPOLLIN};
    int ends[2]; /* ours, and the client's */

    set_program_name(argc > 0 ? argv[0] : "closed");
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        die_errno("set-up");
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ends[0], &event) < 0)
        die_errno("epoll_ctl");
    pid_t helper = start_helper(ends[1]);
    if (helper < 0)
        die_errno("fork");
    forget(ends[0]);
    bool speaks = send(ends[1], "hello", 5, MSG_NOSIGNAL) == 5;
    int told = times_told();

    kill(helper, SIGKILL);
    waitpid(helper, NULL, 0);
    printf("looked %d times, was told %d times of a client that it has forgotten\n", LOOKS, told);
    if (!speaks)
        puts("and the client cannot reach its helper any more");
    return told == 0 && speaks ? EXIT_SUCCESS : EXIT_FAILURE;
}
