/*
 * 15-slashdot: a process for each core, each with epoll by edge. It keeps files open and the heads
 * of their replies ready, sends large files by sendfile(), has threads wait for the disk, and
 * limits clients, descriptors and unsent bytes.
 *
 * Run:  build/bin/15-slashdot -p 8080 /usr/share/doc         (-w 1: one core)
 * Poke: strace -f -e trace=network,epoll_wait build/bin/15-slashdot -w 1 /usr/share/doc
 *       kill -HUP of the first process: the program anew; no client is refused
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "06-select/clients.h"
#include "15-slashdot/confine.h"
#include "15-slashdot/file_cache.h"
#include "15-slashdot/master.h"
#include "15-slashdot/transfer.h"
#include "clock.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "refusal.h"
#include "stop.h"
#include "unsent.h"

#define DISK_THREADS  "16"
#define CACHE_AT_MOST 1024 /* files */
#define OTHER_AT_MOST 64   /* descriptors of a worker, beside clients and files */
#define ENTERED       1    /* in `place`: it is in the epoll */
#define CROWD         1000 /* clients, whose memory is worth giving back */

static bool disk;        /* jobs are over */
static bool signals;     /* a signal is to be taken */
static bool retiring;    /* after RETIRE */
static long last_rounds; /* of accepting, while retiring */
static int epoll_fd, reserve_fd = -1;
static int most_clients;

/*
 * `ops`: if recv() returns less than there was room for, the socket is empty, and new bytes bring a
 * new event: it is not called again. The client's end brings only one event, perhaps together with
 * its last bytes, perhaps while it waits for the disk or its turn. So from that event on `last_ops`
 * calls recv() until it returns 0 or EAGAIN.
 */
static const struct conn_ops ops = {.find = transfer_find,
                                    .send = transfer_send,
                                    .end = transfer_end,
                                    .turn_bytes = SENDFILE_TURN,
                                    .short_count_is_all = true};
static const struct conn_ops last_ops = {
    .find = transfer_find, .send = transfer_send, .end = transfer_end, .turn_bytes = SENDFILE_TURN};

/*
 * Registers a client, once and edge-triggered. After its first turn, not before: for a connection
 * that ends in that turn the call is saved. What came during the turn is reported all the same,
 * since epoll_ctl(2) looks at the socket.
 */
static bool client_register(struct client *c)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};

    c->place = ENTERED;
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->conn.fd, &event) == 0;
}

static void client_register_unless_ended(struct client *c)
{
    if (c->list != ENDED && !client_register(c) &&
        !conn_waits_for_disk(&c->conn)) /* one that waits cannot be ended now: at its time-out */
        clients_end(c);
}

static void client_begin(struct client *c)
{
    c->conn.ops = &ops;
    clients_handle(c, conn_handle); /* TCP_DEFER_ACCEPT: its request is here, as a rule */
    if (c->conn.state != LINGERING) /* else it may end in its next turn; if not, client_go_on() */
        client_register_unless_ended(c);
}

static void client_go_on(struct client *c)
{
    clients_handle(c, conn_handle);
    if (c->place != ENTERED)
        client_register_unless_ended(c);
}

static void client_handle(struct client *c, unsigned events)
{
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        c->conn.ops = &last_ops;
    clients_handle(c, conn_handle);
}

/* Tells a client that there is no room, and closes fd. */
static void refuse(int fd)
{
    serve_refusal(fd);
    close(fd);
}

/* Also at the end of each turn: while descriptors are out open() fails, until one is closed. */
static void keep_reserve(void)
{
    if (reserve_fd < 0)
        reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/*
 * Without a descriptor the connection stays in the queue, and its client waits for no reason it
 * could see. The descriptor kept for this is closed, used to refuse the client, and opened again.
 */
static void refuse_with_reserve(int listen_fd)
{
    if (reserve_fd < 0)
        return;
    close(reserve_fd);
    reserve_fd = -1;
    int fd = accept_nonblocking(listen_fd);
    if (fd >= 0)
        refuse(fd);
    keep_reserve();
}

/* If most_clients are here clients_make_room() ends one; without one, the new one is refused. */
static void admit(int fd, const struct options *o)
{
    struct client *c;

    if (clients_count() >= most_clients && clients_make_room(0) != ROOM)
        refuse(fd);
    else if ((c = clients_add(fd, o)) != NULL)
        client_begin(c);
}

/* As clients_accept(), but refuses clients when it is full. Returns whether more may be pending. */
static bool accept_or_refuse(int listen_fd, const struct options *o)
{
    for (int i = 0; i < ACCEPTS; i++) {
        if (clients_pause_if_room_soon(most_clients))
            return true;
        int fd = accept_nonblocking(listen_fd);
        if (fd >= 0) {
            admit(fd, o);
        } else if (errno == EAGAIN || (errno == EINVAL && stopping)) { /* empty, or shut */
            return false;
        } else if (accept_must_pause(errno)) {
            if (!accept_lacks_room(errno))
                clients_pause();
            else if (clients_make_room_or_pause(0) == NONE)
                refuse_with_reserve(listen_fd);
            return true;
        }
    }
    return true;
}

/*
 * The listening socket has to be taken out of the epoll: it stays open, since master and other
 * workers have it too. EPOLLEXCLUSIVE wakes one waiter per connection. If it woke this worker, no
 * other will hear of it, so a worker that retires accepts what is queued, in at most backlog + 1
 * turns.
 */
static void take_signals(int signal_fd, int listen_fd, const struct options *o)
{
    workers_signals(signal_fd, &retiring);
    signals = false;
    conn_serves_while_stopping = retiring;
    if (!stopping)
        return;
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, listen_fd, NULL);
    clients_pending = clients_pending && retiring;
    last_rounds = o->backlog + 1L;
}

/* free() keeps small blocks in its lists, and the pages under them (mallopt(3), M_MXFAST). When
 * seven of eight clients have left, malloc_trim(3), which only glibc has, gives the pages back. */
static void give_back(void)
{
    static int most;
    int here = clients_count();

    most = here > most ? here : most;
    if (most < CROWD || here > most / 8)
        return;
    malloc_trim(0);
    most = here;
}

/* How long to sleep: until a client is overdue, or a cached file. */
static int loop_timeout_ms(void)
{
    int clients = clients_timeout_ms(), files = file_cache_sweep(now_ms());

    return clients < 0 || (files >= 0 && files < clients) ? files : clients;
}

static void event_loop(int listen_fd, int signal_fd, const struct options *o)
{
    struct epoll_event events[EVENTS];
    struct conn *conn;
    struct client *c;

    while (!stopping || clients_pending || clients_count() > 0) {
        if (stopping && !retiring)
            clients_stop();
        int nready = epoll_wait(epoll_fd, events, EVENTS, loop_timeout_ms());
        if (nready < 0 && errno != EINTR)
            die_errno("epoll_wait");
        for (int i = 0; i < nready; i++) {
            void *ptr = events[i].data.ptr;
            if (ptr == &clients_pending || ptr == &disk || ptr == &signals)
                *(bool *)ptr = true;
            else
                client_handle(ptr, events[i].events);
        }
        if (signals)
            take_signals(signal_fd, listen_fd, o);
        if (disk)
            jobs_take_over();
        disk = false;
        while ((conn = jobs_next_over()) != NULL)
            clients_handle((struct client *)conn, conn_handle); /* its first member */
        while ((c = clients_next_again()) != NULL)
            client_go_on(c);
        if (clients_pending && clients_may_accept())
            clients_pending = accept_or_refuse(listen_fd, o) && (!stopping || --last_rounds > 0);
        while ((c = clients_next_overdue()) != NULL)
            clients_handle(c, conn_expire);
        while ((c = clients_next_ended()) != NULL) {
            conn_end(&c->conn);
            clients_free(c);
        }
        keep_reserve();
        give_back();
    }
}

static void watch_for(int fd, bool *flag, unsigned how)
{
    struct epoll_event event = {.events = EPOLLIN | how, .data.ptr = flag};

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        die_errno("epoll_ctl");
}

static rlim_t least(rlim_t a, rlim_t b)
{
    return a < b ? a : b;
}

/* Raises the limit of descriptors as far as it may and returns it: listening sockets count, too. */
static rlim_t raise_limit(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        die_errno("getrlimit");
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) < 0)
        die_errno("setrlimit");
    return least(files.rlim_cur, 1 << 30);
}

/* Divides the limit: a quarter for the cache (at most CACHE_AT_MOST), an eighth for the rest (at
 * most OTHER_AT_MOST), what is left for clients, unless -c allows fewer. A reply whose file is not
 * in the cache takes a second descriptor, which is not counted. */
static void divide_limit(rlim_t most, int clients, int workers)
{
    file_cache_most = (int)least(most / 4, CACHE_AT_MOST);
    most_clients = (int)(most - least(most / 4, CACHE_AT_MOST) - least(most / 8, OTHER_AT_MOST));
    int each = clients / workers + (clients % workers > 0);
    most_clients = each < most_clients ? each : most_clients;
    if (file_cache_most < 1)
        die(EXIT_FAILURE, "a limit of %llu descriptors is too low", (unsigned long long)most);
}

static void worker_main(int listen_fd, int threads, int number, bool confined,
                        const struct options *o)
{
    stop_on_signals(); /* for SIGALRM: SIGTERM and SIGINT are blocked, and come by signal_fd */
    jobs_init();
    clock_coarse();
    keep_reserve();
    if (reserve_fd < 0)
        die_errno("open /dev/null");
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        die_errno("epoll_create1");
    int signal_fd = workers_signal_fd();
    watch_for(signal_fd, &signals, 0);
    watch_for(jobs_fd(), &disk, 0);
    watch_for(listen_fd, &clients_pending, EPOLLET | EPOLLEXCLUSIVE);
    confine_files(confined, o);
    transfer_start(threads, o->docroot_fd);
    workers_listen_again(listen_fd, o); /* the last that can fail */
    confine_calls(confined, o);
    worker_tells_master(number, signal_fd);
    event_loop(listen_fd, signal_fd, o);
}

static int cores(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

int main(int argc, char **argv)
{
    struct options o;
    struct own_option own[] = {
        {'c', "CLIENTS", "at once at most; default: as the limit of descriptors allows", NULL},
        {'f', NULL, "free workers: they are not confined (to measure what that costs)", NULL},
        {'l', "SOCKETS", "that listen, default one for each worker; 1: shared by all", NULL},
        {'r', "N", "threads of each worker that wait for the disk, default " DISK_THREADS, NULL},
        {'s', "BYTES",
         "that may wait unsent for each; default 131072, until a client has read 1 MiB", NULL},
    };
    int fds[WORKERS_MOST_SOCKETS];

    master_begin(argv[0]);
    options_parse_own(&o, argc, argv, "a web server for all who want to see it", own, 5);
    o.workers = o.workers > 0 ? o.workers : cores();
    int clients = own[0].value != NULL ? options_number('c', own[0].value, 1, INT_MAX) : INT_MAX;
    int threads = options_number('r', own[3].value != NULL ? own[3].value : DISK_THREADS, 1, 1000);
    if (own[4].value != NULL)
        unsent_limit = options_number('s', own[4].value, 0, INT_MAX);
    unsent_lifts = own[4].value == NULL;
    rlim_t most = raise_limit();
    int sockets = WORKERS_MOST_SOCKETS;
    if (own[2].value != NULL)
        sockets = options_number('l', own[2].value, 1, WORKERS_MOST_SOCKETS);
    sockets = workers_listen(&o, fds, sockets < o.workers ? sockets : o.workers);
    if (o.workers < sockets) /* the old program had more; each needs a worker */
        o.workers = sockets;
    divide_limit(most, clients, o.workers);
    int number = master_run(&o, argv, fds, sockets);
    if (number >= 0)
        worker_main(workers_own(fds, sockets, number), threads, number, own[1].value == NULL, &o);
    return EXIT_SUCCESS;
}
