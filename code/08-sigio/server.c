/*
 * 08-sigio: the kernel keeps the list of descriptors, and queues a signal for each that becomes
 * ready. The queue may overflow; recover() is for that.
 *
 * Run:  build/bin/08-sigio -p 8080 /usr/share/doc
 * Poke: strace -e trace=rt_sigtimedwait,poll build/bin/08-sigio -p 8080 /usr/share/doc
 *       prlimit --sigpending=4 build/bin/08-sigio -p 8080 /usr/share/doc      (a queue for four)
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "06-select/clients.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

#define READY (SIGRTMIN + 1) /* its siginfo has the descriptor; SIGIO: the queue was full */

/* A client's place is its descriptor: fds[i] is i, or -1 if there is none, who[i] its client. */
static struct pollfd *fds;
static struct client **who;
static int room;

static void watch(struct client *c)
{
    fds[c->conn.fd].events = c->want == WANT_WRITE ? POLLOUT : POLLIN; /* for recover() */
}

static bool has_room(int place)
{
    int more = room > 0 ? 2 * room : 64;

    if (place < room)
        return true;
    more = more > place ? more : place + 1;
    struct pollfd *new_fds = realloc(fds, (size_t)more * sizeof *fds);
    fds = new_fds != NULL ? new_fds : fds;
    struct client **new_who = realloc(who, (size_t)more * sizeof *who);
    who = new_who != NULL ? new_who : who;
    if (new_fds == NULL || new_who == NULL)
        return false;
    for (; room < more; room++) {
        fds[room] = (struct pollfd){.fd = -1};
        who[room] = NULL;
    }
    return true;
}

/* From now on the kernel queues READY for this process whenever something happens to fd. */
static bool arm(int fd)
{
    return fcntl(fd, F_SETOWN, getpid()) == 0 && fcntl(fd, F_SETSIG, READY) == 0 &&
           fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC) == 0;
}

static bool enter(struct client *c)
{
    if (!has_room(c->conn.fd) || !arm(c->conn.fd))
        return false;
    who[c->conn.fd] = c;
    fds[c->conn.fd].fd = c->conn.fd;
    watch(c);
    return true;
}

static void forget(struct client *c)
{
    fds[c->conn.fd].fd = -1;
    who[c->conn.fd] = NULL;
}

static void handle(struct client *c)
{
    if (clients_handle(c, conn_handle))
        watch(c);
}

static void begin(struct client *c)
{
    if (enter(c))
        handle(c); /* its request may be here already */
    else
        clients_refuse(c);
}

/*
 * The queue was full, so signals were lost: poll() finds all that is ready. The signals in the
 * queue are discarded first, by SIG_IGN; SIG_DFL would keep them. Later ones are queued again.
 * SIGIO from another process has the same effect: it may have merged with the kernel's.
 */
static void recover(void)
{
    if (signal(SIGIO, SIG_IGN) == SIG_ERR || signal(READY, SIG_IGN) == SIG_ERR ||
        signal(SIGIO, SIG_DFL) == SIG_ERR || signal(READY, SIG_DFL) == SIG_ERR)
        die_errno("signal");
    int used = room; /* poll() refuses more entries than there may be descriptors */
    while (used > 0 && who[used - 1] == NULL)
        used--;
    int nready = poll(fds, (nfds_t)used, 0);
    for (int fd = 0; fd < used; fd++)
        if (who[fd] != NULL && (nready < 0 || fds[fd].revents != 0)) /* if it failed: ask all */
            handle(who[fd]);
    clients_pending = true;
}

static void event_loop(int listen_fd, const sigset_t *signals, const struct options *o)
{
    struct client *c;
    unsigned taken = 0;

    while (!stopping || clients_count() > 0) {
        if (stopping)
            clients_stop();
        siginfo_t info;
        int timeout_ms = clients_timeout_ms();
        struct timespec limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
        int signum = sigtimedwait(signals, &info, timeout_ms < 0 ? NULL : &limit);
        if (signum < 0 && errno != EAGAIN && errno != EINTR)
            die_errno("sigtimedwait");
        /* si_code > 0: from the kernel. sigqueue() puts its si_value where si_fd is, in a union. */
        /* region: taken */
        int fd = signum == READY && info.si_code > 0 ? info.si_fd : -1;
        if (signum == SIGTERM || signum == SIGINT)
            stop_begin();
        else if (signum == SIGIO)
            recover();
        else if (fd == listen_fd)
            clients_pending = true;
        /* endregion: taken */
        else if (fd >= 0 && fd < room && who[fd] != NULL)
            handle(who[fd]); /* or a newer client with this number: a turn too many is harmless */
        if (signum > 0 && timeout_ms == 0 && ++taken % 256 != 0)
            continue; /* else a pass takes only one signal, and its replies queue more */
        while ((c = clients_next_again()) != NULL)
            handle(c);
        clients_accept(listen_fd, o, begin);
        while ((c = clients_next_overdue()) != NULL)
            clients_handle(c, conn_expire);
        while ((c = clients_next_ended()) != NULL) {
            forget(c);
            conn_end(&c->conn);
            clients_free(c);
        }
    }
}

/* Blocked signals stay queued until sigtimedwait() takes them: none can be missed before it. */
static sigset_t block_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, READY);
    sigaddset(&signals, SIGIO);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
        die_errno("sigprocmask");
    return signals;
}

int main(int argc, char **argv)
{
    struct options o;

    options_parse(&o, argc, argv, "a web server that is told of each event by a signal");
    stop_on_signals();
    sigset_t signals = block_signals();
    int listen_fd = tcp_listen(&o);
    stop_wakes(listen_fd, -1);
    if (!arm(listen_fd))
        die_errno("fcntl");
    clients_pending = true; /* clients that came before arm() raise no signal */
    tcp_ready(listen_fd, &o);
    event_loop(listen_fd, &signals, &o);
    return EXIT_SUCCESS;
}
