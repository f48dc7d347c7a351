/*
 * successor.h: the program that is to take over, and how it shows that it can. It sets itself up
 * beside the one that serves. Where it lacks something, its DOCROOT, descriptors, the program
 * itself, the old one serves on, and no client goes without a reply.
 */
#ifndef SUCCESSOR_H
#define SUCCESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define READY_MS 10000 /* for a successor to be ready */

struct successor {
    pid_t pid;       /* 0: none sets itself up */
    int fd;          /* of a pipe: what it says goes here, and not to stderr, until it is ready */
    long long until; /* by now_ms() */
    size_t len;
    char said[512];
};

/*
 * Starts argv[0] in a child, with these listening sockets. s->pid is 0 if that fails, after a line
 * on stderr. Whenever it says something the caller gets SIGIO, which has to be blocked.
 */
void successor_start(struct successor *s, char **argv, const int *fds, int count);

/* Listens to it. Once it is ready it is a child like others, and *s is free for the next one. */
bool successor_is_ready(struct successor *s);

/* It will never be: it has ended with this status, of waitpid(), or its time is over. A line on
 * stderr says why, and *s is free. */
void successor_failed(struct successor *s, int status);

/*
 * For the successor itself. The listening sockets it was started with, into fds; 0: it is none.
 * When its set-up is over, except for that of its workers, its stderr is given back to it; returns
 * whether it is one. successor_ready(true) says that it is ready, when all its workers are. They
 * inherit the descriptor that this needs, and close it by successor_ready(false). It returns false
 * in a program that is no successor.
 */
int successor_sockets(int *fds, int most);
bool successor_begin(void);
bool successor_ready(bool say);

#endif
