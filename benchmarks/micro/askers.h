/*
 * askers.h: the clients of a server that is measured: kept connections over loopback, in a process
 * of their own, which also reads the server's clock. Requests and replies have no content.
 */
#ifndef ASKERS_H
#define ASKERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define REQUEST     64  /* bytes */
#define REPLY       100 /* bytes */
#define ASKERS_MOST 1000
#define DEPTH_MOST  16
#define PATIENCE    60 /* seconds for the whole run */

/* What the clients have seen: of a while in the middle of the run, and `answered` of all of it. */
struct seen {
    double cpu_ns;      /* processor time of the server for a request */
    double rate;        /* requests a second */
    double client_busy; /* processor time of the clients, in per cent of the while */
    uint64_t answered;
};

/* Zeroed, and shared with children that are made later. It is never given back. */
struct seen *seen_new(void);

/*
 * Connects a process of its own with the caller, the server, by `clients` connections: into fds.
 * Each client writes `depth` requests at once, and again when it has read the replies. For some
 * time nothing is counted. Then everything is, for at least `ns`, and until the clients have asked
 * four times on average. Then each client closes when it has its replies. The process ends with
 * status 0 if nothing has failed; else it has said what. It cannot outlive its parent. Dies if a
 * call fails here; both processes end after PATIENCE seconds, by SIGALRM.
 */
pid_t askers_start(int *fds, size_t clients, size_t depth, uint64_t ns, struct seen *seen);

/* Waits until it has ended; dies if it has failed. */
void askers_await_end(pid_t askers);

/* From now on the caller runs on this one of the processors that it may use. The clients stay on
 * the first. As Linux numbers them, first and last are of two cores, where there are two. */
enum processor { FIRST_PROCESSOR, LAST_PROCESSOR };
void stay_on(enum processor which);

#endif
