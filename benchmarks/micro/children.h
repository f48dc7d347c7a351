/*
 * children.h: many child processes that say they run, then sleep, and cannot outlive their parent.
 *
 * Two pipes do it. Each child writes one byte into `report` when it first runs. Then it reads from
 * `life`, into which nobody ever writes: the read returns, with end of file, when the last write
 * end is closed. Only the parent keeps a write end, so however the parent ends, by return or by
 * SIGKILL, the kernel closes it and all children wake and exit. (prctl(PR_SET_PDEATHSIG) would do
 * on Linux alone; a pipe works on every Unix.)
 */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct children {
    int report[2];
    int life[2];
};

/*
 * What our parent ignores we ignore too, and what it has blocked is blocked here and in our
 * children: with SIGCHLD ignored no child can be waited for, and with SIGTERM blocked none ends by
 * it. This ends that; children_open() does it too.
 */
void children_signals(void);

/*
 * Opens the pipes; dies if it cannot. From here on the process has `patience` seconds: a child that
 * dies before it reports (the kernel was out of memory, say) must end the run with a message, not
 * leave it waiting.
 */
void children_open(struct children *children, unsigned patience);

/*
 * What a child does, called where fork() returned 0: it reports and sleeps until the parent ends
 * its children, or is gone. False if a call failed.
 */
bool child_sleep(const struct children *children);

/* The same for a child whose whole life that is. */
_Noreturn void child_live(const struct children *children);

/* The parent waits until the child it has just made has run; dies on any other outcome. */
void children_await_one(const struct children *children);

/* Ends count children and reaps them; dies if one of them had failed. */
void children_end(struct children *children, size_t count);

/* Processes that want nothing but the processor, and cannot outlive their parent. */

struct spinners {
    pid_t *pid;
    size_t count;
};

/*
 * Starts count processes, or none, that run without end, `nicer` steps nicer than we are. If one
 * cannot be made: false, with errno set and `count` of those there are; spinners_end() ends them.
 */
bool spinners_start(struct spinners *spinners, size_t count, int nicer);

/* Ends and reaps them. */
void spinners_end(struct spinners *spinners);

/*
 * One fork() whose child ends at once: what remains is the price of the copy, of making it and of
 * throwing it away.
 */
struct fork_sample {
    size_t x;          /* what the caller measures against */
    uint64_t fork_ns;  /* until fork() has returned in the parent */
    uint64_t total_ns; /* until the child has ended and waitpid() has returned */
    int error;         /* errno of a fork() that failed, and then the times say nothing; or 0 */
};

/* Fills in all but x; dies if the child did not end with status 0. */
void fork_once(struct fork_sample *sample);

/* Prints the samples as TSV; x_name is the name of the first column. */
void fork_print(const struct fork_sample *samples, size_t count, const char *x_name);

#endif
