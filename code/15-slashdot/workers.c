#include "15-slashdot/master.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "15-slashdot/successor.h"
#include "die.h"
#include "net.h"
#include "stop.h"

#define DEFER_S 1 /* seconds; then a client is accepted though it has sent nothing */

static void workers_set_up_socket(int fd)
{
    int seconds = DEFER_S;

    if (setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds) < 0)
        die_errno("setsockopt TCP_DEFER_ACCEPT");
}

int workers_listen(const struct options *o, int *fds, int number)
{
    int handed = successor_sockets(fds, WORKERS_MOST_SOCKETS);

    if (handed == 0)
        tcp_listen_each(o, fds, number, workers_set_up_socket);
    for (int i = 0; i < handed; i++)
        workers_set_up_socket(fds[i]);
    return handed > 0 ? handed : number;
}

void workers_listen_again(int fd, const struct options *o)
{
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0) /* else accept() waits if the client has left since */
        die_errno("fcntl");
    demand_room(fd);
    if (listen(fd, o->backlog) < 0)
        die_errno("listen");
}

int workers_own(const int *fds, int number, int worker)
{
    for (int i = 0; i < number; i++)
        if (i != worker % number)
            close(fds[i]);
    return fds[worker % number];
}

static pid_t master;

int workers_signal_fd(void)
{
    sigset_t set;

    master = getppid();
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, RETIRE);
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        die_errno("signalfd");
    return fd;
}

void workers_signals(int fd, bool *retiring)
{
    struct signalfd_siginfo info;

    while (read(fd, &info, sizeof info) == sizeof info) {
        bool is_retire = (int)info.ssi_signo == RETIRE;
        if (is_retire && (pid_t)info.ssi_pid != master && info.ssi_pid != 0)
            continue; /* from others; 0: as in wait_for_signal() of master.c */
        bool first = !stopping;
        if (!is_retire && (first || *retiring)) {
            *retiring = false;
            stop_begin();
        } else if (first) {
            stopping = *retiring = true;
        }
    }
    if (errno != EAGAIN &&
        errno != EINTR) /* the descriptor would stay readable, and the loop never sleep */
        die_errno("read signalfd");
}
