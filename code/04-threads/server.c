/*
 * 04-threads: a thread for each connection. Threads share their memory and descriptors, and when
 * one crashes, all end. To start one is cheaper than a fork, because nothing is copied.
 *
 * Run:  build/bin/04-threads -p 8080 /usr/share/doc
 * Poke: sleep 9 > /dev/tcp/127.0.0.1/8080 &       (bash: a client that connects and says nothing)
 *       build/bin/00-client http://127.0.0.1:8080/
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "01-iterative/serve_client.h"
#include "04-threads/connections.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "refusal.h"
#include "stop.h"

static void *serve(void *arg)
{
    struct connection *conn = arg;
    const struct serve how = {.options = conn->options, .keep_alive = true};

    /* region: own */
    connections_own(conn);
    if (serve_set_timeouts(conn->fd, conn->options->timeout) == 0)
        serve_client(conn->fd, &how);
    connections_remove(conn);
    return NULL;
    /* endregion: own */
}

static void start_thread(int fd, const struct options *o)
{
    pthread_t thread;
    struct connection *conn = connections_add(fd, o);

    if (conn == NULL)
        return;
    /* region: create */
    connections_hold();
    int error = pthread_create(&thread, &detached, serve, conn);
    connections_release();
    /* endregion: create */
    if (error != 0) { /* EAGAIN: this client is told, the server goes on */
        errno = error;
        warn_errno("pthread_create");
        serve_refusal(fd);
        connections_remove(conn);
    }
}

static void accept_loop(int listen_fd, const struct options *o)
{
    while (!stopping) {
        int fd = accept(listen_fd, NULL, NULL);
        if (fd < 0) {
            if (!stopping)
                accept_failed(errno);
            continue;
        }
        accept_succeeded();
        start_thread(fd, o); /* and no close(): all threads share one table of descriptors */
    }
}

int main(int argc, char **argv)
{
    struct options o;

    options_parse(&o, argc, argv, "a web server with a thread for each connection");
    stop_on_signals();
    int listen_fd = tcp_listen(&o); /* no thread before -u has its effect: see privileges.h */
    stop_wakes(listen_fd, -1);
    connections_init(o.workers);
    tcp_ready(listen_fd, &o);
    accept_loop(listen_fd, &o);
    connections_end();
    exit(EXIT_SUCCESS); /* not return: dietlibc keeps the errno of main on main's stack */
}
