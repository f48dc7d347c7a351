/*
 * 03-prefork: the processes are started before there are clients. All sleep in accept(), and for
 * each connection the kernel wakes one of them; when all are busy, the next client waits in the
 * listen backlog.
 *
 * Run:  build/bin/03-prefork -p 8080 -w 2 /usr/share/doc
 * Poke: for i in 1 2; do sleep 9 > /dev/tcp/127.0.0.1/8080 & done    (bash: two silent clients)
 *       build/bin/00-client http://127.0.0.1:8080/
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "01-iterative/serve_client.h"
#include "02-fork/children.h"
#include "end_with_parent.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

#define DEFAULT_WORKERS 16

static void accept_loop(int listen_fd, const struct options *o);

static _Noreturn void child(pid_t parent, int listen_fd, const struct options *o)
{
    stop_wakes(-1, -1);
    end_with_parent(parent); /* else we would keep the port after it was killed */
    children_forget();
    accept_loop(listen_fd, o);
    _exit(EXIT_SUCCESS); /* not exit(), which would write what stdio has buffered a second time */
}

/* Returns false, with errno, where there is no room for another process. */
static bool start_child(int listen_fd, const struct options *o)
{
    children_hold();
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        child(parent, listen_fd, o);
    children_add(pid);
    children_release();
    return pid > 0;
}

static void accept_loop(int listen_fd, const struct options *o)
{
    const struct serve how = {.options = o, .keep_alive = true};

    while (!stopping) {
        int fd = accept(listen_fd, NULL, NULL);
        if (fd < 0) {
            if (errno == EINVAL) /* the parent was told to stop, and has shut the socket for all */
                return;
            if (!stopping)
                accept_failed(errno);
            continue;
        }
        accept_succeeded();
        /* region: turn */
        if (serve_set_timeouts(fd, o->timeout) == 0) {
            stop_wakes(-1, fd);
            serve_client(fd, &how);
            stop_wakes(-1, -1);
        }
        close(fd);
        /* endregion: turn */
    }
}

/* A child that dies is replaced, at the rate that children_wait_for_turn() allows. */
static void keep_children(int listen_fd, const struct options *o)
{
    while (children_wait_for_turn())
        if (!start_child(listen_fd, o)) /* the others serve on; the next turn tries again */
            warn_errno("fork");
    if (!stopping)
        die(EXIT_FAILURE, "no process could be kept alive");
}

int main(int argc, char **argv)
{
    struct options o;

    options_parse(&o, argc, argv, "a web server whose processes wait for the clients");
    o.workers = o.workers > 0 ? o.workers : DEFAULT_WORKERS;
    stop_on_signals();
    children_init(o.workers);
    int listen_fd = tcp_listen(&o);
    stop_wakes(listen_fd, -1);
    demand_room(listen_fd);          /* fails now, while no child serves */
    if (!start_child(listen_fd, &o)) /* the first: without it no process would serve */
        die_errno("fork");
    tcp_ready(listen_fd, &o);
    keep_children(listen_fd, &o);
    children_end();
    return EXIT_SUCCESS;
}
