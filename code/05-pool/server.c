/*
 * 05-pool: a fixed number of threads, which are started before there are clients. They take their
 * connections from a queue. When all are busy a client waits in the queue, and when the queue is
 * full, in the listen backlog.
 *
 * Run:  build/bin/05-pool -p 8080 -w 2 /usr/share/doc
 * Poke: for i in 1 2; do sleep 9 > /dev/tcp/127.0.0.1/8080 & done    (bash: two silent clients)
 *       build/bin/00-client http://127.0.0.1:8080/
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "01-iterative/serve_client.h"
#include "04-threads/connections.h"
#include "05-pool/queue.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

#define DEFAULT_THREADS 16
static void *serve(void *arg)
{
    struct connection *conn;

    (void)arg;
    while ((conn = queue_take()) != NULL) {
        const struct serve how = {.options = conn->options, .keep_alive = true};

        connections_own(conn);
        if (serve_set_timeouts(conn->fd, conn->options->timeout) == 0)
            serve_client(conn->fd, &how);
        connections_remove(conn);
    }
    return NULL;
}

/* As many as there is room for, at least one. */
static void start_threads(int count)
{
    pthread_t thread;
    int started = 0;

    connections_hold();
    while (started < count && (errno = pthread_create(&thread, &detached, serve, NULL)) == 0)
        started++;
    if (started == 0)
        die_errno("pthread_create");
    if (started < count)
        warn_errno("pthread_create: %d threads instead of %d", started, count);
    connections_release();
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
        struct connection *conn = connections_add(fd, o);
        if (conn != NULL)
            queue_put(conn);
    }
}

int main(int argc, char **argv)
{
    struct options o;

    options_parse(&o, argc, argv, "a web server with a fixed number of threads");
    o.workers = o.workers > 0 ? o.workers : DEFAULT_THREADS;
    stop_on_signals();
    int listen_fd = tcp_listen(&o); /* no thread before -u has its effect: see privileges.h */
    stop_wakes(listen_fd, -1);
    connections_init(2 * o.workers); /* one for each thread, and as many in the queue */
    queue_init(2 * o.workers);
    start_threads(o.workers);
    tcp_ready(listen_fd, &o);
    accept_loop(listen_fd, &o);
    connections_end();
    queue_close();
    exit(EXIT_SUCCESS); /* not return: dietlibc keeps the errno of main on main's stack */
}
