/*
 * facts.h: the parts of readiness-facts. Each function returns what its name says; all die if a
 * call fails that is not itself the question.
 */
#ifndef FACTS_H
#define FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/select.h>

/* FD_SET() as the C library makes it when it is told to check, and when it is told not to. */
void fd_set_checked(int fd, fd_set *set);
void fd_set_plain(int fd, fd_set *set);

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
struct epoll_facts epoll_facts(void);

#endif
