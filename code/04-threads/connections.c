#include "04-threads/connections.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "01-iterative/serve_client.h"
#include "die.h"
#include "stop.h"

#define DEFAULT_MOST 1000         /* without a limit the peer decides how many threads run here */
#define STACK_SIZE   (256 * 1024) /* twice what a request takes; 8 MiB is usual */

pthread_attr_t detached;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the next three */
static pthread_cond_t removed = PTHREAD_COND_INITIALIZER;
static struct connection all = {.next = &all, .previous = &all}; /* the list's head and end */
static int live;

/* Written before there are threads, and only read from then on. */
static sigset_t stop_signals;
static int max_live, listening;

/* A signal goes to any thread that does not block it, and interrupts that one alone. So all block
 * it, and this one asks for it: no handler, and all that a handler must not do is allowed here. */
static void *wait_for_stop(void *arg)
{
    int signum;

    (void)arg;
    sigwait(&stop_signals, &signum);
    pthread_mutex_lock(&lock);
    stopping = true;
    shutdown(listening, SHUT_RD);
    for (struct connection *conn = all.next; conn != &all; conn = conn->next)
        shutdown(conn->fd, SHUT_RD);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Detached: nobody will ask how it ended, so nothing of it stays behind. */
static int set_attributes(void)
{
    errno = pthread_attr_init(&detached); /* these functions return their errors */
    if (errno == 0)
        errno = pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (errno == 0)
        errno = pthread_attr_setstacksize(&detached, STACK_SIZE);
    return errno == 0 ? 0 : -1;
}

void connections_init(int most)
{
    max_live = most > 0 ? most : DEFAULT_MOST;
    if (set_attributes() < 0)
        die_errno("attributes of threads");
    sigemptyset(&stop_signals);
    sigaddset(&stop_signals, SIGTERM);
    sigaddset(&stop_signals, SIGINT);
    errno = pthread_sigmask(SIG_BLOCK, &stop_signals, NULL); /* threads inherit it */
    if (errno != 0)
        die_errno("pthread_sigmask");
}

void connections_stop_on_signals(int listen_fd)
{
    pthread_t thread;

    listening = listen_fd;
    errno = pthread_create(&thread, &detached, wait_for_stop, NULL);
    if (errno != 0)
        die_errno("pthread_create");
}

struct connection *connections_add(int fd, const struct options *o)
{
    struct connection *conn = malloc(sizeof *conn);

    if (conn == NULL) {
        warn_errno("malloc");
        serve_refusal(fd);
        close(fd);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    while (live >= max_live)
        pthread_cond_wait(&removed, &lock);
    *conn = (struct connection){fd, o, all.next, &all};
    conn->next->previous = conn->previous->next = conn;
    live++;
    if (stopping) /* the list was gone through before this one was in it */
        shutdown(fd, SHUT_RD);
    pthread_mutex_unlock(&lock);
    return conn;
}

void connections_remove(struct connection *conn)
{
    pthread_mutex_lock(&lock);
    conn->next->previous = conn->previous;
    conn->previous->next = conn->next;
    live--;
    pthread_cond_signal(&removed);
    pthread_mutex_unlock(&lock);
    close(conn->fd); /* not before it is out of the list: the number may be another's at once */
    free(conn);
}

void connections_end(void)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end); /* the clock that pthread_cond_timedwait() goes by */
    end.tv_sec += STOP_GRACE;
    pthread_mutex_lock(&lock);
    while (live > 0 && pthread_cond_timedwait(&removed, &lock, &end) == 0)
        continue;
    pthread_mutex_unlock(&lock);
}
