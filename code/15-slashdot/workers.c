#include "15-slashdot/workers.h"

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

#define DEFER_S 1 /* a guest that says nothing is accepted after that */

/* region: listen */
static void set_up(int fd)
{
    int on = 1, seconds = DEFER_S;

    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
        die_errno("setsockopt TCP_NODELAY");
    if (setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds) < 0)
        die_errno("setsockopt TCP_DEFER_ACCEPT");
}

int workers_listen(const struct options *o, int *fds, int number)
{
    int handed = successor_sockets(fds, WORKERS_MOST_SOCKETS);

    if (handed == 0)
        tcp_listen_each(o, fds, number);
    else if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        die_errno("signal SIGPIPE");
    else
        number = handed;
    for (int i = 0; i < number; i++)
        set_up(fds[i]);
    return number;
}
/* endregion: listen */

int workers_news_fd(void)
{
    sigset_t news;

    sigemptyset(&news);
    sigaddset(&news, SIGTERM);
    sigaddset(&news, SIGINT);
    sigaddset(&news, RETIRE);
    int fd = signalfd(-1, &news, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        die_errno("signalfd");
    return fd;
}

void workers_news(int fd, bool *retiring)
{
    struct signalfd_siginfo news;

    while (read(fd, &news, sizeof news) == sizeof news) {
        bool first = !stopping;
        if (news.ssi_signo != RETIRE && (first || *retiring)) {
            *retiring = false;
            stop_begin();
        } else if (first) {
            stopping = *retiring = true;
        }
    }
}
