#include "stop.h"
#include "die.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

_Static_assert(ATOMIC_BOOL_LOCK_FREE == 2, "a signal handler must not wait for a lock");
atomic_bool stopping;

static volatile sig_atomic_t listening = -1;
static volatile sig_atomic_t client = -1;
static volatile sig_atomic_t alarm_came; /* on_alarm() has changed the client's socket */

void stop_waiting(int fd)
{
    const struct timeval at_once = {.tv_usec = 1}; /* 0 would be: for ever */

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &at_once, sizeof at_once);
}

static void leave_marks(void)
{
    if (listening >= 0)
        shutdown(listening, SHUT_RD);
    if (client >= 0)
        stop_waiting(client);
}

void stop_begin(void)
{
    static atomic_bool begun; /* not `stopping`: 15-slashdot sets it, too, when a worker retires */

    stopping = true;
    leave_marks();
    if (!atomic_exchange(&begun, true))
        alarm(STOP_GRACE);
}

static void on_stop(int signum)
{
    int saved = errno;

    (void)signum;
    stop_begin();
    errno = saved;
}

/* A step took too long: calls on the client's socket wait no longer. When stopping: the end. */
static void on_alarm(int signum)
{
    const struct timeval at_once = {.tv_usec = 1};
    int saved = errno;

    (void)signum;
    if (stopping || client < 0)
        _exit(0);
    stop_waiting(client);
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &at_once, sizeof at_once);
    alarm_came = 1;
    errno = saved;
}

void stop_wait_again(void)
{
    const struct timeval never = {0};

    if (!alarm_came)
        return;
    alarm_came = 0;
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &never, sizeof never);
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &never, sizeof never);
    if (stopping) /* the signal came in between */
        leave_marks();
}

void stop_wakes(int listen_fd, int client_fd)
{
    listening = listen_fd;
    client = client_fd;
    if (stopping) /* the signal came before it could know of these */
        leave_marks();
}

void stop_listening(void)
{
    int fd = listening;

    stop_wakes(-1, -1); /* before close(): the handler must not shut a newer socket */
    if (fd >= 0)
        close(fd);
}

void stop_handle(int signum, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};

    sigfillset(&action.sa_mask);
    if (sigaction(signum, &action, NULL) < 0)
        die_errno("sigaction %d", signum);
}

void stop_on_signals(void)
{
    stop_handle(SIGALRM, on_alarm);
    stop_handle(SIGTERM, on_stop);
    stop_handle(SIGINT, on_stop);
}
