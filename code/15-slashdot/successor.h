/*
 * successor.h: the program that is to take over, a candidate until it has said that it is ready. It
 * sets itself up beside the one that serves. If it fails (DOCROOT is missing, descriptors, the
 * program itself) the old one serves on. The picture is in master.h.
 */
#ifndef SUCCESSOR_H
#define SUCCESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define READY_MS 10000 /* for a successor to be ready */

struct successor {
    pid_t pid;       /* 0: there is none */
    int fd;          /* of a pipe: its stderr until successor_begin(), then only "ready" */
    long long until; /* it has time to be ready, by now_ms() */
    size_t len;      /* bytes of `said`: of what it has written to stderr */
    char said[512];
};

/*
 * Runs argv[0] in a child, with these listening sockets. If that fails s->pid is 0, and a line on
 * stderr says why. The caller, which must have SIGIO blocked, gets that signal whenever the child
 * writes to the pipe.
 */
void successor_start(struct successor *s, char **argv, const int *fds, int count);

/* Reads the pipe. Returns true once the child has written "ready": then the pipe is closed, s->pid
 * is 0, and the child is the caller's, which has noted its process ID before. */
bool successor_is_ready(struct successor *s);

/* It has ended with this status of waitpid(), or its time is over (-1): then the caller stops it. A
 * line on stderr says so, and s->pid is 0. */
void successor_failed(struct successor *s, int status);

/*
 * In the new program. successor_sockets() puts the listening sockets it was started with into fds,
 * and returns how many; 0: it is no successor. successor_begin(), after its set-up and before that
 * of its workers, gives its stderr back to it, and returns whether it is a successor.
 * successor_ready(true) says that it is ready, when all its workers are; they inherit the
 * descriptor that this needs, and close it by successor_ready(false). It returns false in a program
 * that is no successor.
 */
int successor_sockets(int *fds, int most);
bool successor_begin(void);
bool successor_ready(bool say);

#endif
