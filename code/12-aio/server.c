/*
 * 12-aio: the loop does not wait for the disk. Files that are not in memory are looked up by
 * threads and read by threads or by the kernel (-d), while their connections wait; an eventfd tells
 * the loop when a job is over.
 *
 * Run:  build/bin/12-aio -p 8080 /usr/share/doc
 *       (-d sendfile -m 0: the loop waits, as in 11-sendfile)
 * Poke: strace -f -e trace=openat2,pread64,write build/bin/12-aio -p 8080 /usr/share/doc
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "06-select/clients.h"
#include "12-aio/appendix/appendix.h"
#include "12-aio/backend.h"
#include "12-aio/look_up.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "stop.h"

#define READ_THREADS 16
#define MOST_THREADS 1000

static bool disk; /* jobs are over: jobs_take_over() is to be called */
static int epoll_fd;

static struct conn_ops ops = {.find = look_up_reply, .send = backend_send, .end = backend_end};

/*
 * Registered once, edge-triggered, for both directions. By level epoll_wait() would return at once,
 * again and again, for the socket of a client that waits for the disk. An event that comes
 * meanwhile is lost, as conn_handle() cannot use it yet; so when the job is over conn_handle() goes
 * on until EAGAIN, without waiting for another.
 */
static bool enter(struct client *c)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};

    c->conn.ops = &ops;
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->conn.fd, &event) == 0;
}

static void handle(struct client *c)
{
    clients_handle(c, conn_handle);
}

static void begin(struct client *c)
{
    if (enter(c))
        handle(c); /* its request may be here already */
    else
        clients_refuse(c);
}

static void event_loop(int listen_fd, const struct options *o)
{
    struct epoll_event events[EVENTS];
    struct client *c;
    struct conn *conn;

    while (!stopping || clients_count() > 0) {
        if (stopping)
            clients_stop();
        int nready = epoll_wait(epoll_fd, events, EVENTS, clients_timeout_ms());
        if (nready < 0 && errno != EINTR)
            die_errno("epoll_wait");
        for (int i = 0; i < nready; i++) {
            c = events[i].data.ptr;
            if (c == (void *)&clients_pending)
                clients_pending = true;
            else if (c == (void *)&disk)
                disk = true;
            else
                handle(c);
        }
        /* region: disk */
        if (disk)
            jobs_take_over();
        disk = false;
        while ((conn = jobs_next_over()) != NULL)
            handle((struct client *)conn); /* its first member */
        /* endregion: disk */
        while ((c = clients_next_again()) != NULL)
            handle(c);
        clients_accept(listen_fd, o, begin);
        while ((c = clients_next_overdue()) != NULL)
            clients_handle(c, conn_expire);
        while ((c = clients_next_ended()) != NULL) {
            conn_end(&c->conn);
            clients_free(c);
        }
    }
}

static void watch_for(int fd, bool *flag, unsigned how)
{
    struct epoll_event event = {.events = EPOLLIN | how, .data.ptr = flag};

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        die_errno("epoll_ctl");
}

int main(int argc, char **argv)
{
    struct options o;
    struct own_option own[] = {
        {'d', "BACKEND", BACKEND_HELP, NULL},
        {'r', "N", "N reads at a time, default 16", NULL},
        {'m', "N", APPENDIX_LOOK_UP_HELP, NULL},
        {'n', NULL, "do not note in a file's inode that it was read (O_NOATIME)", NULL},
    };

    options_parse_own(&o, argc, argv, "a web server that does not wait for the disk", own, 4);
    jobs_init();
    piece_init();
    bool has_helper = helper_choose(&ops, own[2].value, o.docroot_fd); /* forks before threads */
    int threads = own[2].value != NULL && !has_helper
                      ? options_number('m', own[2].value, 0, MOST_THREADS)
                      : LOOK_UP_THREADS;
    look_up_start(threads, o.docroot_fd);
    backend_choose(own[0].value, own[1].value != NULL
                                     ? options_number('r', own[1].value, 1, MOST_THREADS)
                                     : READ_THREADS);
    if (own[3].value != NULL)
        appendix_no_atime(&ops);
    stop_on_signals();
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        die_errno("epoll_create1");
    int listen_fd = tcp_listen_nonblocking(&o);
    watch_for(listen_fd, &clients_pending, EPOLLET);
    watch_for(jobs_fd(), &disk, 0);
    if (has_helper)
        watch_for(helper_fd(), &disk, 0);
    tcp_ready(listen_fd, &o);
    event_loop(listen_fd, &o);
    if (has_helper)
        helper_stop();
    return EXIT_SUCCESS;
}
