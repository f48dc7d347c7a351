/*
 * 01-iterative: one client at a time. The others wait in the listen backlog until it is done,
 * so one slow client stops them all.
 *
 * Run:  build/bin/01-iterative -p 8080 /usr/share/doc
 * Poke: sleep 9 > /dev/tcp/127.0.0.1/8080 &       (bash: a client that connects and says nothing)
 *       build/bin/00-client http://127.0.0.1:8080/
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "01-iterative/serve_client.h"
#include "net.h"
#include "options.h"
#include "stop.h"

static void serve(int listen_fd, int fd, const struct options *o)
{
    /* With keep-alive an idle client would keep the server from all others. */
    const struct serve how = {.options = o, .keep_alive = false};

    if (serve_set_timeouts(fd, o->timeout) < 0)
        return;
    stop_wakes(listen_fd, fd);
    serve_client(fd, &how);
    stop_wakes(listen_fd, -1);
}

static void accept_loop(int listen_fd, const struct options *o)
{
    /* region: turns */
    while (!stopping) {
        int fd = accept(listen_fd, NULL, NULL);
        if (fd < 0) {
            if (!stopping)
                accept_failed(errno);
            continue;
        }
        accept_succeeded();
        serve(listen_fd, fd, o);
        close(fd);
    }
    /* endregion: turns */
}

int main(int argc, char **argv)
{
    struct options o;

    options_parse(&o, argc, argv, "a web server that serves one client at a time");
    stop_on_signals();
    int listen_fd = tcp_listen(&o);
    stop_wakes(listen_fd, -1);
    tcp_ready(listen_fd, &o);
    accept_loop(listen_fd, &o);
    return EXIT_SUCCESS;
}
