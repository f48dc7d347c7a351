/*
 * readiness-facts: what select, poll and epoll do where books and memory differ.
 *
 * Shows: one line; 1 is yes, 0 is no, "-" is that this system has no epoll.
 *   fd_setsize         FD_SETSIZE of this C library
 *   kernel_beyond      select() finds a descriptor of FD_SETSIZE, in a bit map long enough
 *   checked_aborts     FD_SET(FD_SETSIZE) ends the process, compiled with the library's checks
 *   plain_overruns     compiled without, it writes behind the fd_set
 *   select_ebadf       select() fails with EBADF for a closed descriptor
 *   poll_ebadf         poll() does
 *   poll_nval          poll() says POLLNVAL for it instead, and counts it as an event
 *   poll_skips         poll() passes over a negative descriptor
 *   constants_equal    of 5 EPOLL constants, those with the value of the one of poll()
 *   level_again        epoll tells again of what was not read
 *   edge_again         it does with EPOLLET
 *   cookie_kept        epoll gives back 64 bits of ours, and no descriptor
 *   delete_null        EPOLL_CTL_DEL needs no event
 * What may crash is done by a child.
 * Source: select(2), poll(2), epoll_ctl(2), feature_test_macros(7).
 * Needs: FD_SETSIZE descriptors and a few (ulimit -Hn).
 * Run:   readiness-facts
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "facts.h"
#include "micro.h"

#define WORD_BITS (CHAR_BIT * sizeof(unsigned long))
#define NEEDED    (FD_SETSIZE + 16) /* descriptors */
#define OVERRUN   3                 /* status of a child whose guard was written over */

/* On many systems a process may have FD_SETSIZE descriptors, and more if it asks. */
static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == -1)
        die_errno("getrlimit");
    if (limit.rlim_max < NEEDED)
        die(EXIT_UNSUPPORTED, "%d descriptors are needed (ulimit -Hn)", NEEDED);
    if (limit.rlim_cur < NEEDED)
        limit.rlim_cur = NEEDED;
    if (setrlimit(RLIMIT_NOFILE, &limit) == -1)
        die_errno("setrlimit");
}

/* An end of a pipe that can be read. */
static int readable(void)
{
    int fds[2];
    if (pipe(fds) == -1)
        die_errno("pipe");
    if (write(fds[1], "", 1) != 1)
        die_errno("write");
    return fds[0];
}

static int closed(void)
{
    int fd = readable();
    if (close(fd) == -1)
        die_errno("close");
    return fd;
}

static int kernel_beyond(void)
{
    unsigned long map[FD_SETSIZE / WORD_BITS + 1];
    struct timeval at_once = {.tv_sec = 0};
    int fd = fcntl(readable(), F_DUPFD, FD_SETSIZE);
    if (fd == -1)
        die_errno("fcntl F_DUPFD %d", FD_SETSIZE);
    memset(map, 0, sizeof map);
    map[(size_t)fd / WORD_BITS] = 1UL << ((size_t)fd % WORD_BITS);
    int n = select(fd + 1, (fd_set *)map, NULL, NULL, &at_once);
    close(fd);
    return n == 1 && map[(size_t)fd / WORD_BITS] != 0;
}

/* In a child, whose last words nobody reads: the wait status of one FD_SET(FD_SETSIZE). */
static int status_beyond(void (*set_bit)(int fd, fd_set *set))
{
    struct {
        fd_set set;
        volatile unsigned long guard;
    } room;
    const struct rlimit no_core = {0, 0};
    int status;
    pid_t child = fork();
    if (child == -1)
        die_errno("fork");
    if (child == 0) {
        memset(&room, 0, sizeof room);
        if (close(STDERR_FILENO) == -1 || setrlimit(RLIMIT_CORE, &no_core) == -1)
            _exit(EXIT_FAILURE);
        set_bit(FD_SETSIZE, &room.set);
        _exit(room.guard != 0 ? OVERRUN : EXIT_SUCCESS);
    }
    if (waitpid(child, &status, 0) == -1)
        die_errno("waitpid");
    return status;
}

static int checked_aborts(void)
{
    int status = status_beyond(fd_set_checked);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static int plain_overruns(void)
{
    int status = status_beyond(fd_set_plain);
    return WIFEXITED(status) && WEXITSTATUS(status) == OVERRUN;
}

static int select_ebadf(void)
{
    struct timeval at_once = {.tv_sec = 0};
    fd_set set;
    int fd = closed();
    FD_ZERO(&set);
    FD_SET(fd, &set);
    return select(fd + 1, &set, NULL, NULL, &at_once) == -1 && errno == EBADF;
}

/* What poll() says of one descriptor: its value and revents. */
static int look(int fd, short *revents)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    int n = poll(&wanted, 1, 0);
    *revents = wanted.revents;
    return n;
}

static void print_facts(void)
{
    short nval, skipped;
    int n = look(closed(), &nval);
    int poll_ebadf = n == -1 && errno == EBADF;
    int skips = look(-1, &skipped) == 0 && skipped == 0;
    const struct epoll_facts e = epoll_facts();
    const int of_epoll[] = {e.constants_equal, e.level_again, e.edge_again, e.cookie_kept,
                            e.delete_null};

    puts("fd_setsize\tkernel_beyond\tchecked_aborts\tplain_overruns\tselect_ebadf\tpoll_ebadf\t"
         "poll_nval\tpoll_skips\tconstants_equal\tlevel_again\tedge_again\tcookie_kept\t"
         "delete_null");
    printf("%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d", FD_SETSIZE, kernel_beyond(), checked_aborts(),
           plain_overruns(), select_ebadf(), poll_ebadf, n == 1 && nval == POLLNVAL, skips);
    for (size_t i = 0; i < sizeof of_epoll / sizeof *of_epoll; i++) {
        if (of_epoll[i] == NOT_HERE)
            fputs("\t-", stdout);
        else
            printf("\t%d", of_epoll[i]);
    }
    putchar('\n');
}

int main(int argc, char *argv[])
{
    read_command_line(argc, argv, &(struct command_line){.arguments = ""});
    children_signals();
    raise_limit();
    print_facts();
    samples_finish();
    return EXIT_SUCCESS;
}
