/*
 * 02-fork: a process for each connection. A slow client holds up its own process only.
 *
 * Run:  build/bin/02-fork -p 8080 /usr/share/doc
 * Poke: sleep 9 > /dev/tcp/127.0.0.1/8080 &       (bash: a client that connects and says nothing)
 *       build/bin/00-client http://127.0.0.1:8080/
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "01-iterative/serve_client.h"
#include "02-fork/children.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "refusal.h"
#include "stop.h"

static _Noreturn void child(int listen_fd, int fd, const struct options *o)
{
    const struct serve how = {.options = o, .keep_alive = true, .watchdog = alarm};

    close(listen_fd);
    stop_wakes(-1, fd);
    children_forget();
    serve_client(fd, &how);
    _exit(EXIT_SUCCESS); /* not exit(), which would write what stdio has buffered a second time */
}

static void start_child(int listen_fd, int fd, const struct options *o)
{
    /* region: fork */
    children_hold();
    pid_t pid = fork();
    if (pid == 0)
        child(listen_fd, fd, o);
    /* endregion: fork */
    if (pid < 0) { /* EAGAIN, ENOMEM: this client is told, the server goes on */
        warn_errno("fork");
        serve_refusal(fd);
    }
    children_add(pid);
    children_wait_for_room();
    children_release();
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
        start_child(listen_fd, fd, o);
        close(fd); /* the child has its own copy; else the parent would run out of descriptors */
    }
}

int main(int argc, char **argv)
{
    struct options o;

    options_parse(&o, argc, argv, "a web server with a process for each connection");
    stop_on_signals();
    children_init(o.workers);
    int listen_fd = tcp_listen(&o);
    stop_wakes(listen_fd, -1);
    tcp_ready(listen_fd, &o);
    accept_loop(listen_fd, &o);
    children_end();
    return EXIT_SUCCESS;
}
