/*
 * 14-owfat: libowfat, the library of the talk's author, waits and sends. It has a table of
 * descriptors, and chooses by itself what the system offers to wait with: here epoll. What is left
 * for a server is HTTP, time-outs, and when a connection ends.
 *
 * Run:  build/bin/14-owfat -p 8080 /usr/share/doc
 * Poke: strace build/bin/14-owfat -p 8080 /usr/share/doc
 */
#include <errno.h>
#include <io.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "14-owfat/conn.h"
#include "14-owfat/watching.h"
#include "clock.h"
#include "die.h"
#include "net.h"
#include "options.h"
#include "refusal.h"
#include "reply.h"
#include "stop.h"

#define WALK_S 1 /* between two looks at all time-outs */

struct owfat_client {
    struct owfat_conn conn;
    enum want want;
    struct owfat_client *next; /* of those that have ended */
};

static struct owfat_client *ended;     /* in this turn */
static int clients, highest_fd, tight; /* tight: so many were here when descriptors ran out */
static long long paused_until;         /* no accept() before, by now_ms(); 0: it is not paused */

static void watch_listener(int listen_fd)
{
    if (!want_read(listen_fd))
        die_errno("io_wantread");
}

static void end_client(struct owfat_client *c)
{
    io_setcookie(c->conn.fd, NULL); /* the library may have it in a queue, and name it again */
    io_timeout(c->conn.fd, (tai6464){.sec.x = 0}); /* none: io_timeouted() would name it again */
    c->next = ended;
    ended = c;
}

static void handle(struct owfat_client *c)
{
    if (c == NULL) /* has ended in this turn: end_client() */
        return;
    enum want before = c->want;
    c->want = owfat_handle(&c->conn);
    if (c->want == WANT_CLOSE || !watch(c->conn.fd, c->want, before))
        end_client(c);
}

static void begin_client(int fd, const struct options *o)
{
    struct owfat_client *c = calloc(1, sizeof *c);

    if (c == NULL || !owfat_init(&c->conn, fd, o)) {
        serve_refusal(fd);
        close(fd);
        free(c);
        return;
    }
    clients++;
    if (fd > highest_fd)
        highest_fd = fd;
    io_setcookie(fd, c);
    if (!want_read(fd)) {
        serve_refusal(fd);
        end_client(c);
    }
}

static bool make_room(void)
{
    struct owfat_conn *conn = owfat_that_leaves(ACCEPT_PAUSE_MS);

    if (conn != NULL)
        end_client((struct owfat_client *)conn); /* its first member */
    return conn != NULL;
}

static void accept_some(int listen_fd, const struct options *o)
{
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = reply_keep_spare(tight > 0, o->docroot_fd) ? accept_nonblocking(listen_fd) : -1;
        if (fd >= 0) {
            begin_client(fd, o);
        } else if (errno == EAGAIN || stopping) {
            break;
        } else if (accept_must_pause(errno)) {
            bool lacks_room = accept_lacks_room(errno);
            tight = lacks_room ? clients : tight;
            if (lacks_room && (ended != NULL || make_room()))
                break;
            paused_until = now_ms() + ACCEPT_PAUSE_MS;
            if (clients > 0)
                io_dontwantread(listen_fd);
            else /* with nothing to wait for io_waituntil2() does not wait */
                poll(NULL, 0, ACCEPT_PAUSE_MS);
            break;
        }
    }
}

static void end_overdue(int listen_fd)
{
    static tai6464 last, next; /* walk over all clients: when it was, when it is due */
    tai6464 now;
    int64 fd;

    taia_now(&now); /* the wall clock, which may be set back */
    if (taia_less(&now, &next) && !taia_less(&now, &last))
        return;
    last = now;
    taia_addsec(&next, &now, WALK_S);
    /* io_timeouted() looks as far as the descriptor of the last call (libowfat 0.32, 0.33). */
    io_fd_flags(highest_fd, IO_FD_NONBLOCK);
    while ((fd = io_timeouted()) >= 0) {
        struct owfat_client *c = io_getcookie(fd);
        if (c != NULL && owfat_expire(&c->conn))
            end_client(c);
    }
    if (!stopping)
        watch_listener(listen_fd);
}

static void free_ended(int listen_fd)
{
    struct owfat_client *c;

    if (!stopping && (ended != NULL || (paused_until > 0 && now_ms() >= paused_until))) {
        watch_listener(listen_fd);
        paused_until = 0;
    }
    while ((c = ended) != NULL) {
        ended = c->next;
        owfat_end(&c->conn);
        free(c);
        clients--;
    }
    if (clients < tight / 4 * 3 || clients == 0) {
        tight = 0;
        reply_keep_spare(false, -1);
    }
}

/* After the signal to stop each client has one more turn: requests that have come are answered, and
 * a client without one is ended. */
static void stop_clients(int listen_fd)
{
    static bool stopped;

    if (stopped)
        return;
    stopped = true;
    stop_wakes(-1, -1);  /* the number may soon be a client's */
    io_close(listen_fd); /* the signal handler has shut it: it would be ready for ever */
    for (int fd = 0; fd <= highest_fd; fd++)
        handle(io_getcookie(fd));
    free_ended(listen_fd);
}

static void event_loop(int listen_fd, const struct options *o)
{
    int64 fd;

    while (!stopping || clients > 0) {
        if (stopping)
            stop_clients(listen_fd);
        int ms = clients == 0 ? -1 : paused_until > 0 ? ACCEPT_PAUSE_MS : WALK_S * 1000;
        long long began = now_ms();
        errno = 0;
        if (io_waituntil2(ms) < 0 && errno != EINTR)
            die_errno("io_waituntil2");
        bool interrupted = errno == EINTR;
        /* region: turn */
        while ((fd = io_canread()) >= 0) {
            io_eagain_read(fd);
            if (fd == listen_fd)
                accept_some(listen_fd, o);
            else
                handle(io_getcookie(fd));
        }
        while ((fd = io_canwrite()) >= 0) {
            io_eagain_write(fd);
            handle(io_getcookie(fd));
        }
        /* endregion: turn */
        if (was_stalled(began, ms))
            owfat_renew_overdue();
        if (!interrupted) /* else no client has been looked at: it may only seem to be late */
            end_overdue(listen_fd);
        free_ended(listen_fd);
    }
}

int main(int argc, char **argv)
{
    struct options o;

    options_parse(&o, argc, argv, "a web server on libowfat's io_* and iob_*");
    stop_on_signals();
    io_check(); /* else Debian's 0.32 hangs in its first wait if a descriptor is a multiple of 16 */
    if (!io_fd(o.docroot_fd)) /* the first descriptor has the library open its epoll */
        die_errno("io_fd");
    /* Neither socket is made non-blocking by io_nonblock(), which cannot say that it has failed. */
    int listen_fd = tcp_listen_nonblocking(&o);
    if (!io_fd_canwrite(listen_fd)) /* not io_fd(), which would watch it for room to write, too */
        die_errno("io_fd");
    watch_listener(listen_fd);
    tcp_ready(listen_fd, &o);
    event_loop(listen_fd, &o);
    return EXIT_SUCCESS;
}
