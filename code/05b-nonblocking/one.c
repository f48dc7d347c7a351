/*
 * one.c: one client at a time again, but its socket never blocks: poll() waits for what the
 * connection wants. Between clients accept() waits. To serve thousands, one call would have to wait
 * for all of them: that is the next chapter.
 *
 * Run:  build/bin/05b-nonblocking -p 8080 /usr/share/doc
 * Poke: strace -e trace=recvfrom,sendto,poll build/bin/05b-nonblocking ...
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "05b-nonblocking/conn.h"
#include "clock.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

/*
 * Returns false when the deadline has passed. The signal to stop shuts the listening socket, which
 * poll() always reports (POLLHUP): so a signal that comes just before the call is noticed as well.
 */
static bool wait_for(const struct conn *conn, enum want want, int listen_fd)
{
    struct pollfd p[] = {{.fd = conn->fd, .events = want == WANT_WRITE ? POLLOUT : POLLIN},
                         {.fd = listen_fd}};

    for (;;) {
        long long left = conn->deadline - now_ms();
        if (want == WANT_AGAIN)
            return true;
        if (left <= 0)
            return false;
        /* When stopping, listen_fd would be reported at once, for ever. */
        int nready = poll(p, stopping ? 1 : 2, (int)left);
        if (nready > 0 || (nready < 0 && errno == EINTR && stopping))
            return true;
        if (nready < 0 && errno != EINTR)
            die_errno("poll");
    }
}

static void serve(int listen_fd, int fd, const struct options *o)
{
    struct conn conn;
    enum want want = WANT_AGAIN;

    conn_init(&conn, fd, o);
    /* region: turn */
    while (want != WANT_CLOSE) {
        bool in_time = wait_for(&conn, want, listen_fd);
        want = in_time ? conn_handle(&conn) : conn_expire(&conn);
    }
    /* endregion: turn */
    conn_end(&conn);
}

static void accept_loop(int listen_fd, const struct options *o)
{
    while (!stopping) {
        int fd = accept_nonblocking(listen_fd);
        if (fd < 0) {
            if (!stopping)
                accept_failed(errno);
            continue;
        }
        serve(listen_fd, fd, o);
    }
}

int main(int argc, char **argv)
{
    struct options o;

    options_parse(&o, argc, argv, "a web server for one client at a time that never blocks");
    stop_on_signals();
    int listen_fd = tcp_listen(&o);
    stop_wakes(listen_fd, -1);
    tcp_ready(listen_fd, &o);
    accept_loop(listen_fd, &o);
    return EXIT_SUCCESS;
}
