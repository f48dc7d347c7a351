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
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/epoll.h>
#endif

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

/* What epoll does; NOT_HERE, all of them, where there is none. */
#define NOT_HERE (-1)
struct epoll_facts {
    int constants_equal; /* of EPOLLIN, EPOLLPRI, EPOLLOUT, EPOLLERR and EPOLLHUP: how many have the
                            value of the constant of poll() */
    int level_again;     /* a socket that was not read is told of again */
    int edge_again;      /* the same with EPOLLET */
    int cookie_kept;     /* 64 bits that are no descriptor come back as they were given */
    int delete_null;     /* EPOLL_CTL_DEL needs no event */
};

#ifdef __linux__

static void add(int epoll_fd, int fd, uint32_t events, uint64_t cookie)
{
    struct epoll_event event = {.events = events, .data.u64 = cookie};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == -1)
        die_errno("epoll_ctl");
}

/* How many events there are, without waiting; the last of them in *event. */
static int look_with_epoll(int epoll_fd, struct epoll_event *event)
{
    int n = epoll_wait(epoll_fd, event, 1, 0);
    if (n == -1)
        die_errno("epoll_wait");
    return n;
}

static int constants_equal(void)
{
    return ((int)EPOLLIN == POLLIN) + ((int)EPOLLPRI == POLLPRI) + ((int)EPOLLOUT == POLLOUT) +
           ((int)EPOLLERR == POLLERR) + ((int)EPOLLHUP == POLLHUP);
}

/* Whether a message that nobody reads is told of twice. */
static int told_again(int epoll_fd, int fd, uint32_t events, uint64_t cookie, int *cookie_kept)
{
    struct epoll_event event = {.events = 0};
    add(epoll_fd, fd, events, cookie);
    if (look_with_epoll(epoll_fd, &event) != 1)
        die(EXIT_FAILURE, "epoll_wait: no event of a socket that can be read");
    *cookie_kept = event.data.u64 == cookie;
    return look_with_epoll(epoll_fd, &event);
}

static struct epoll_facts epoll_facts(void)
{
    const uint64_t cookie = 0x0123456789abcdef;
    struct epoll_facts facts = {.constants_equal = constants_equal()};
    int pair[2], edge_kept;
    int epoll_fd = epoll_create1(0);
    if (epoll_fd == -1)
        die_errno("epoll_create1");
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == -1)
        die_errno("socketpair");
    if (send(pair[1], "", 1, 0) != 1)
        die_errno("send");
    facts.level_again = told_again(epoll_fd, pair[0], EPOLLIN, cookie, &facts.cookie_kept);
    facts.delete_null = epoll_ctl(epoll_fd, EPOLL_CTL_DEL, pair[0], NULL) == 0;
    facts.edge_again = told_again(epoll_fd, pair[0], EPOLLIN | EPOLLET, cookie, &edge_kept);
    facts.cookie_kept &= edge_kept;
    close(pair[0]);
    close(pair[1]);
    close(epoll_fd);
    return facts;
}

#else

static struct epoll_facts epoll_facts(void)
{
    return (struct epoll_facts){NOT_HERE, NOT_HERE, NOT_HERE, NOT_HERE, NOT_HERE};
}

#endif

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
