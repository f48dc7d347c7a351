#include "04-threads/connections.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "01-iterative/serve_client.h"
#include "04-threads/first_thread.h"
#include "die.h"
#include "refusal.h"
#include "stop.h"

#define DEFAULT_MOST 1000         /* else clients decide how many threads run here */
#define STACK_SIZE   (256 * 1024) /* twice what a request takes; 8 MiB is usual */
#define WAKE         SIGUSR1      /* not blocked in the threads: interrupts their recv() */

pthread_attr_t detached;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the next three */
static pthread_cond_t removed;                           /* choose_clock() initialises it */
static struct list all = EMPTY_LIST(all);
static int live;

/* Written before there are threads, and only read from then on. */
static sigset_t handled; /* the signals with handlers */
static int max_live;

/* Detached: the C library frees a thread's stack when it ends; no pthread_join() is needed. */
static int set_attributes(void)
{
    errno = pthread_attr_init(&detached); /* these functions return their errors */
    if (errno == 0)
        errno = pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (errno == 0)
        errno = pthread_attr_setstacksize(&detached, STACK_SIZE);
    return errno == 0 ? 0 : -1;
}

/* wait_for_room() uses a clock that setting the date cannot move, if the C library allows it. */
#if defined(__dietlibc__) || defined(__APPLE__)
#define WAIT_CLOCK CLOCK_REALTIME
static int choose_clock(void)
{
    errno = pthread_cond_init(&removed, NULL);
    return errno == 0 ? 0 : -1;
}
#else
#define WAIT_CLOCK CLOCK_MONOTONIC
static int choose_clock(void)
{
    pthread_condattr_t attributes;

    errno = pthread_condattr_init(&attributes);
    if (errno == 0)
        errno = pthread_condattr_setclock(&attributes, WAIT_CLOCK);
    if (errno == 0)
        errno = pthread_cond_init(&removed, &attributes);
    return errno == 0 ? 0 : -1;
}
#endif

/* These signals only interrupt a call that sleeps: recv() in a thread, nanosleep() at the end. */
static void do_nothing(int signum)
{
    (void)signum;
}

void connections_init(int most)
{
    max_live = most > 0 ? most : DEFAULT_MOST;
    if (set_attributes() < 0 || choose_clock() < 0)
        die_errno("attributes of threads");
    stop_handle(SIGALRM, do_nothing);
    stop_handle(WAKE, do_nothing);
    sigemptyset(&handled);
    sigaddset(&handled, SIGALRM);
    sigaddset(&handled, SIGTERM);
    sigaddset(&handled, SIGINT);
    connections_hold();
    if (first_thread() < 0)
        die_errno("pthread_create");
    connections_release();
}

void connections_hold(void)
{
    pthread_sigmask(SIG_BLOCK, &handled, NULL);
}

void connections_release(void)
{
    pthread_sigmask(SIG_UNBLOCK, &handled, NULL);
}

/* Returns whether there is room for one more; if not, the server is to stop. */
static bool wait_for_room(void)
{
    struct timespec end;

    /* A signal handler must not signal a condition variable (signal-safety(7)). So this wakes once
     * a second and looks whether the server is to stop. */
    while (live >= max_live && !stopping) {
        clock_gettime(WAIT_CLOCK, &end); /* cannot fail: the clock exists, end is ours */
        end.tv_sec++;
        pthread_cond_timedwait(&removed, &lock, &end);
    }
    return live < max_live;
}

struct connection *connections_add(int fd, const struct options *o)
{
    struct connection *conn = malloc(sizeof *conn);

    if (conn == NULL)
        warn_errno("malloc");
    pthread_mutex_lock(&lock);
    bool taken = conn != NULL && wait_for_room();
    if (taken) {
        *conn = (struct connection){.fd = fd, .options = o};
        list_append(&all, &conn->node);
        live++;
    }
    pthread_mutex_unlock(&lock);
    if (taken)
        return conn;
    serve_refusal(fd);
    close(fd);
    free(conn);
    return NULL;
}

void connections_own(struct connection *conn)
{
    pthread_mutex_lock(&lock);
    conn->thread = pthread_self();
    conn->owned = true;
    pthread_mutex_unlock(&lock);
}

void connections_remove(struct connection *conn)
{
    pthread_mutex_lock(&lock);
    list_remove(&conn->node);
    live--;
    pthread_cond_signal(&removed);
    pthread_mutex_unlock(&lock);
    close(conn->fd); /* after it has left the list: the number may be given out again at once */
    free(conn);
}

/* stop_waiting() makes the next recv() return at once; the signal interrupts one that sleeps. */
static void wake(struct connection *conn)
{
    stop_waiting(conn->fd);
    if (conn->owned)
        pthread_kill(conn->thread, WAKE); /* the thread exists: it leaves the list before it ends */
}

/* Polls, a hundred times a second: a new thread that sets its own time-out after ours, or is not
 * `owned` yet, is met the next time. */
void connections_end(void)
{
    const struct timespec moment = {.tv_nsec = 10 * 1000 * 1000};
    int left = 1;

    for (int moments = 0; left > 0 && moments < STOP_GRACE * 100; moments++) {
        pthread_mutex_lock(&lock);
        for (struct list *node = all.next; node != &all; node = node->next)
            wake(CONTAINER_OF(node, struct connection, node));
        left = live;
        pthread_mutex_unlock(&lock);
        if (left > 0)
            nanosleep(&moment, NULL);
    }
}
