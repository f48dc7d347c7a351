/*
 * conn_test: what all event loops have in common: the lists of their clients by deadline, and how a
 * connection ends whose last reply may still be on its way.
 *
 * Run: build/asan/conn_test
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "06-select/clients.h"
#include "acknowledged.h"
#include "die.h"
#include "linger.h"
#include "net.h"
#include "stop.h"
#include "tap.h"

static struct options options = {.timeout = 2};

/* ---- a connection: ours, which does not block, and the client's */

static int listen_fd;
static struct sockaddr_in address;

static void need(int result)
{
    if (result < 0) {
        perror("conn_test");
        exit(EXIT_FAILURE);
    }
}

static void listen_here(void)
{
    socklen_t len = sizeof address;

    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    need(listen_fd = socket(AF_INET, SOCK_STREAM, 0));
    need(bind(listen_fd, (struct sockaddr *)&address, sizeof address));
    need(listen(listen_fd, 64));
    need(getsockname(listen_fd, (struct sockaddr *)&address, &len));
    need(fcntl(listen_fd, F_SETFL, O_NONBLOCK));
}

/* Its window is small: what it does not read soon stays with us. */
static int come(void)
{
    int theirs = socket(AF_INET, SOCK_STREAM, 0), few = 4096;

    need(theirs);
    need(setsockopt(theirs, SOL_SOCKET, SO_RCVBUF, &few, sizeof few));
    need(connect(theirs, (struct sockaddr *)&address, sizeof address));
    return theirs;
}

static int accept_one(void)
{
    int ours;

    poll(&(struct pollfd){.fd = listen_fd, .events = POLLIN}, 1, 1000);
    need(ours = accept(listen_fd, NULL, NULL));
    need(fcntl(ours, F_SETFL, O_NONBLOCK));
    return ours;
}

/* The kernel has its moment: until fd may be read from, or all is acknowledged. */
static bool settle(int fd, bool readable)
{
    for (int tries = 0; tries < 1000; tries++) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        poll(&p, 1, 1);
        if (readable ? (p.revents & POLLIN) != 0 : all_acknowledged(fd))
            return true;
    }
    return false;
}

/* ---- linger.c */

static void check_linger(void)
{
    static char bytes[1 << 20];
    struct linger_state l;
    int theirs = come(), ours = accept_one(), turns = 0;

    tap_ok(linger_begin(&l, ours, false, 2) == WANT_AGAIN && l.credit == 200 && !l.unread,
           "two seconds are a credit of %d", l.credit);
    settle(ours, false);
    tap_ok(linger_read(&l, ours) == WANT_CLOSE, "all has arrived, and no more was announced");
    close(ours);
    close(theirs);
    tap_ok(linger_begin(&l, ours, false, 2) == WANT_CLOSE, "a socket that is gone");

    theirs = come();
    ours = accept_one();
    linger_begin(&l, ours, true, 86400);
    tap_ok(l.credit == 32767, "a day is a credit of %d", l.credit);
    settle(ours, false);
    tap_ok(linger_read(&l, ours) == WANT_READ && l.credit == 100,
           "all has arrived, but more was announced: a credit of %d", l.credit);
    tap_ok(linger_look(&l, ours, 500) == WANT_READ && l.credit == 50, "half of it: %d", l.credit);
    tap_ok(linger_look(&l, ours, 500) == WANT_READ && l.credit == 0, "all of it: %d", l.credit);
    tap_ok(linger_look(&l, ours, 10) == WANT_CLOSE, "and no more");
    linger_begin(&l, ours, true, 2);
    for (l.credit = 3; turns < 10; turns++) {
        fcntl(theirs, F_SETFL, O_NONBLOCK);
        while (send(theirs, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
            continue;
        if (turns == 0)
            tap_ok(settle(ours, true) && linger_read(&l, ours) != WANT_CLOSE, "it is read");
        enum want want = linger_read(&l, ours);
        if (want == WANT_CLOSE)
            break;
        if (want == WANT_READ) /* the kernel was slower than we: once more */
            l.credit = 3;
    }
    tap_ok(turns < 10 || l.credit <= 3, "who sends on has so many turns: %d", turns);
    shutdown(theirs, SHUT_WR);
    l.credit = 100;
    while (settle(ours, true) && recv(ours, bytes, sizeof bytes, 0) > 0)
        continue;
    tap_ok(linger_read(&l, ours) == WANT_CLOSE && l.credit == 100, "the client has closed, too");
    close(ours);
    close(theirs);

    theirs = come();
    ours = accept_one();
    while (send(ours, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
        continue;
    linger_begin(&l, ours, false, 2);
    tap_ok(!all_acknowledged(ours) && linger_read(&l, ours) == WANT_READ && l.credit == 200,
           "what has not arrived is waited for");
    tap_ok(linger_look(&l, ours, 2000) == WANT_READ && linger_look(&l, ours, 10) == WANT_CLOSE,
           "for as long as a step takes");
    close(ours);
    close(theirs);
}

/* Each message is one recv(): so many of them fill a turn. */
static void check_linger_turn(void)
{
    struct linger_state l;
    int ends[2];

    need(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends));
    need(fcntl(ends[0], F_SETFL, O_NONBLOCK));
    for (int i = 0; i < LINGER_READS + 1; i++)
        need((int)send(ends[1], "x", 1, 0));
    linger_begin(&l, ends[0], true, 86400);
    tap_ok(linger_read(&l, ends[0]) == WANT_AGAIN && l.credit == 99,
           "all has arrived, and more comes without a pause: a credit of %d", l.credit);
    tap_ok(linger_read(&l, ends[0]) == WANT_READ, "then nothing comes");
    stopping = true;
    tap_ok(linger_read(&l, ends[0]) == WANT_CLOSE, "a server that stops does not wait for more");
    stopping = false;
    close(ends[0]);
    close(ends[1]);
}

/* ---- clock.c */

static void check_stalled(void)
{
    long long minute_ago = now_ms() - 60000;

    tap_ok(was_stalled(minute_ago, 0), "a minute for a wait of none");
    tap_ok(!was_stalled(minute_ago, 120000), "one of two minutes");
    tap_ok(!was_stalled(minute_ago, -1), "a wait without limit is never too long");
}

/* ---- clients.c */

static enum want wish;
static enum state next_state;
static int handled;

/* Does what it was told to, and begins a step. */
static enum want turn(struct conn *c)
{
    handled++;
    c->state = next_state & 3;
    c->deadline = now_ms() + (c->state == LINGERING ? 100 : 2000);
    return wish;
}

static enum want same_step(struct conn *c)
{
    (void)c;
    return wish;
}

static struct client *accepted[64];
static int begun;

static void begin(struct client *c)
{
    accepted[begun++] = c;
}

static bool handle(struct client *c, enum want want, enum state state)
{
    wish = want;
    next_state = state;
    return clients_handle(c, turn);
}

static void check_accept(void)
{
    int theirs[40];

    for (int i = 0; i < 40; i++)
        theirs[i] = come();
    clients_accept(listen_fd, &options, begin);
    tap_ok(begun == 0, "nobody is known to knock: %d", begun);
    clients_pending = true;
    clients_accept(listen_fd, &options, begin);
    tap_ok(begun == 16 && clients_pending, "%d of 40 in a turn", begun);
    clients_accept(listen_fd, &options, begin);
    clients_accept(listen_fd, &options, begin);
    tap_ok(begun == 40 && clients_count() == 40 && !clients_pending, "%d in three", begun);
    for (int i = 0; i < 40; i++)
        close(theirs[i]);
}

static void check_turns(void)
{
    struct client *a = accepted[0], *b = accepted[1], *c = accepted[2];

    tap_ok(clients_timeout_ms() > 1000 && clients_timeout_ms() <= 2000, "two seconds for all");
    tap_ok(handle(a, WANT_WRITE, SENDING) && a->want == WANT_WRITE, "one waits to write");
    tap_ok(!handle(a, WANT_WRITE, SENDING), "and still does");
    tap_ok(!handle(a, WANT_AGAIN, SENDING) && a->want == WANT_WRITE, "another turn: no other wish");
    handled = 0;
    handle(a, WANT_READ, READING);
    tap_ok(handled == 0, "one that has its turn ahead is left alone");
    a->conn.deadline = now_ms() - 1;
    tap_ok(clients_next_overdue() == NULL, "its time is not looked at");
    tap_ok(clients_next_again() == NULL, "before the wait it is nobody's turn");
    tap_ok(clients_timeout_ms() == 0, "there is no time to wait");
    tap_ok(clients_next_again() == a, "after it, it is");
    handle(a, WANT_AGAIN, SENDING);
    tap_ok(clients_next_again() == NULL, "once");
    clients_timeout_ms();
    tap_ok(clients_next_again() == a && clients_next_again() == NULL, "and once after the next");
    tap_ok(handle(a, WANT_READ, READING), "it waits to read");

    tap_ok(clients_next_overdue() == NULL, "nobody's time is up");
    handle(c, WANT_READ, LINGERING);
    tap_ok(clients_timeout_ms() <= 100, "one who lingers is looked at soon");
    c->conn.deadline += 5000;
    handle(accepted[4], WANT_READ, LINGERING);
    tap_ok(accepted[4]->list == LINGERING, "another list, though it is not in its order");
    b->conn.deadline = now_ms() + 1;
    poll(NULL, 0, 2);
    tap_ok(clients_next_overdue() == NULL, "no wait has looked at the oldest since");
    clients_timeout_ms();
    tap_ok(clients_next_overdue() == b, "the time of the oldest is up");
    wish = WANT_CLOSE;
    clients_handle(b, same_step);
    tap_ok(clients_next_overdue() == NULL && clients_next_ended() == b, "and ends");
    close(b->conn.fd);
    clients_free(b);
    tap_ok(clients_count() == 39 && clients_next_ended() == NULL, "39 are left");
}

static int lines;

static void count_line(const char *text)
{
    const char *what = "accept: ";

    lines += strncmp(text, what, strlen(what)) == 0 &&
             strcmp(text + strlen(what), strerror(EMFILE)) == 0; /* musl has words of its own */
}

static int port_of(int fd)
{
    struct sockaddr_in name;
    socklen_t len = sizeof name;

    need(getsockname(fd, (struct sockaddr *)&name, &len));
    return ntohs(name.sin_port);
}

static void leave_as_it_is(int fd)
{
    (void)fd;
}

/* A port that the kernel chose it may take back when the socket is shut; not one that we named. */
static void check_port_of_each(void)
{
    const struct options any = {.addr = "127.0.0.1", .port = 0, .backlog = 8};
    int fds[3];
    bool same = true;

    tcp_listen_each(&any, fds, 3, leave_as_it_is);
    int port = port_of(fds[0]);
    for (int i = 0; i < 3; i++) {
        need(shutdown(fds[i], SHUT_RD));
        need(listen(fds[i], 8));
        same = same && port_of(fds[i]) == port;
    }
    tap_ok(same, "sockets that are shut and listen again have the port of before");
    for (int i = 0; i < 3; i++)
        close(fds[i]);
}

/* By the call of the servers that do not block. */
static void accept_another(void)
{
    int theirs = come();

    poll(&(struct pollfd){.fd = listen_fd, .events = POLLIN}, 1, 1000);
    int ours = accept_nonblocking(listen_fd);
    need(ours);
    close(ours);
    close(theirs);
}

/* accept(2): what is of one connection, and what is of the system. */
static void check_errors_of_accept(void)
{
    static const int passing[] = {ECONNABORTED, EINTR,     EPROTO, ENETDOWN,    ENETUNREACH,
                                  EHOSTUNREACH, EHOSTDOWN, EAGAIN, ENOPROTOOPT, EOPNOTSUPP};
    static const int others[] = {EMFILE, EMFILE, EPERM, EACCES, EIO, 9999, EMFILE};
    bool go_on = true, pause = true;
    int some = 0, most = 0;

    write_line = count_line;
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        go_on = go_on && !accept_must_pause(passing[i]);
    tap_ok(go_on, "an error of one connection does not keep the others waiting");
    for (; most < 10000 && !accept_must_pause(ECONNABORTED); most++)
        ;
    tap_ok(most > 16 && most < 10000, "so many that they are no connection's: %d", most);
    poll(NULL, 0, ACCEPT_PAUSE_MS);
    while (some < 16 && !accept_must_pause(ECONNABORTED))
        some++;
    tap_ok(some == 16, "after the pause they may be again");
    poll(NULL, 0, ACCEPT_PAUSE_MS);
    bool paused = false;
    for (int i = 0; i < 10 * ACCEPT_IN_A_ROW; i++) {
        if (i % 16 == 0)
            accept_another();
        paused = paused || accept_must_pause(ECONNABORTED);
    }
    tap_ok(!paused, "so many between connections that are accepted are connections'");
    lines = 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        errno = 0;
        pause = pause && accept_must_pause(others[i]) && errno == others[i];
    }
    tap_ok(pause, "after any other it pauses");
    tap_ok(lines == 2, "and says so when it is not the one before");
    tap_ok(accept_lacks_room(EMFILE) && accept_lacks_room(ENFILE) && accept_lacks_room(ENOBUFS) &&
               accept_lacks_room(ENOMEM) && !accept_lacks_room(EPERM),
           "for descriptors and memory one who leaves makes room");
    accept_must_pause(EIO);
}

static void check_room(void)
{
    struct client *a = accepted[3];

    for (int i = 2; i <= 4; i += 2)
        accepted[i]->conn.linger.credit = 200; /* it has just begun to linger */
    tap_ok(clients_make_room(1000) != ROOM, "nobody has been silent for a second");
    tap_ok(clients_may_accept(), "so far all are welcome");
    bool welcome;
    int ms;
    long long since;
    do { /* again, if others have kept us from looking until it was over */
        since = now_ms();
        a->conn.deadline = since + 2000; /* it has just come */
        clients_make_room_or_pause(100);
        clients_pending = true;
        welcome = clients_may_accept();
        ms = clients_timeout_ms();
    } while (now_ms() - since >= 100);
    tap_ok(!welcome, "for a while nobody is");
    tap_ok(ms > 0 && ms <= 100, "until then %d ms", ms);
    poll(NULL, 0, ms + 1);
    tap_ok(clients_may_accept() && clients_timeout_ms() == 0, "and then they are");
    a->conn.deadline -= 1000; /* it was silent for a second */
    tap_ok(clients_make_room(1000) == ROOM && clients_next_ended() == a, "the oldest makes room");
    tap_ok(a->list == ENDED && !handle(a, WANT_READ, READING), "and is left alone");
    close(a->conn.fd);
    clients_free(a);

    struct rlimit files, few;
    int before = begun, theirs = come();
    need(getrlimit(RLIMIT_NOFILE, &files));
    few = files;
    int free_one = dup(0); /* the lowest there is */
    few.rlim_cur = (rlim_t)free_one;
    close(free_one);
    need(setrlimit(RLIMIT_NOFILE, &few));
    lines = 0;
    clients_accept(listen_fd, &options, begin);
    tap_ok(lines == 1, "no descriptor: it is said");
    need(setrlimit(RLIMIT_NOFILE, &files));
    struct client *leaves = clients_next_ended();
    tap_ok(begun == before && clients_pending && leaves != NULL, "no descriptor: one leaves");
    clients_refuse(leaves);
    clients_accept(listen_fd, &options, begin);
    tap_ok(begun == before + 1, "and another comes");
    close(theirs);
}

#define SILENCE 1000000 /* ms: nobody leaves for being silent */

/* A client whose step has taken `ms`, waiting as `want` says. */
static struct client *slow(int i, enum want want, int ms, bool has_read)
{
    struct client *c = accepted[i];

    handle(c, want, SENDING);
    c->conn.has_read = has_read;
    c->conn.deadline = now_ms() + 2000 - ms;
    return c;
}

static bool leaves(const struct client *c)
{
    bool ok = clients_make_room(SILENCE) == ROOM && clients_next_ended() == c;

    if (ok)
        clients_refuse(clients_next_ended());
    return ok;
}

/* The slowest reply leaves for a new client, if it is below the floor. */
static void check_slow_replies(void)
{
    struct client *lingers = accepted[4];

    handle(accepted[2], WANT_READ, READING);
    lingers->conn.linger.credit = 150; /* of 200 */
    tap_ok(clients_make_room(SILENCE) == SOON, "one whose last reply has not arrived: soon");
    slow(10, WANT_READ, 1900, false);
    slow(11, WANT_WRITE, 1800, true);
    struct client *slowest = slow(12, WANT_WRITE, 1700, false);
    struct client *second = slow(13, WANT_WRITE, 1600, false);
    slow(14, WANT_WRITE, 900, false);
    clients_timeout_ms();
    slow(15, WANT_AGAIN, 1500, false);
    tap_ok(leaves(slowest), "it waits for the client, longer than all others");
    tap_ok(leaves(second), "then the next");
    tap_ok(clients_make_room(SILENCE) == SOON,
           "none that waits for the disk, has read a megabyte, is quick, or has its turn ahead");
    accepted[14]->conn.deadline -= 200;
    tap_ok(leaves(accepted[14]), "a second for a step is all that it has");
    lingers->conn.linger.credit = 100;
    tap_ok(leaves(lingers), "and after the last reply");
    tap_ok(clients_make_room(SILENCE) == NONE, "here nobody has to leave");
    slow(16, WANT_WRITE, 0, false);
    tap_ok(clients_make_room(SILENCE) == SOON, "one that may have to is waited for");
    tap_ok(!clients_pause_if_room_soon(1) && clients_may_accept(), "but not where one is silent");
    clients_timeout_ms(); /* a wait of no time: 15 has its turn ahead */
    struct client *stalled = slow(17, WANT_WRITE, 3000, false);
    struct client *again = slow(18, WANT_WRITE, 3000, false);
    struct client *disk = slow(19, WANT_READ, 3000, false);
    long long deadline = stalled->conn.deadline, of_again = again->conn.deadline;
    again->conn.renewed = true;
    poll(NULL, 0, 2 * FULL_STEP_MS + 100);
    clients_timeout_ms();
    tap_ok(stalled->conn.renewed && stalled->conn.deadline > deadline,
           "a reply that waits for room has its time once more after a stall");
    tap_ok(again->conn.deadline == of_again, "and only once");
    tap_ok(!disk->conn.renewed, "not one that waits for the disk");
    conn_begin_step(&again->conn);
    tap_ok(!again->conn.renewed, "but again in a new step");
    for (int i = 17; i <= 19; i++)
        handle(accepted[i], WANT_READ, READING);
    slow(16, WANT_WRITE, 0, false);
    tap_ok(clients_make_room(SILENCE) == SOON, "seconds later it is another shortage");
}

static void check_stop(void)
{
    struct client *c;
    char text[16] = "";
    int theirs = come(), before = begun, left = clients_count();

    tap_ok(clients_add(accept_one(), &options) != NULL, "one more");
    int late = come();
    stopping = clients_pending = true;
    clients_accept(listen_fd, &options, begin);
    tap_ok(begun == before && !clients_pending, "nobody else");
    close(late);
    left++;
    clients_stop();
    clients_stop();
    clients_timeout_ms();
    for (handled = 0; (c = clients_next_again()) != NULL;)
        handle(c, WANT_CLOSE, READING);
    tap_ok(handled == left, "at the end each has a turn: %d", handled);
    while ((c = clients_next_ended()) != NULL)
        clients_refuse(c);
    tap_ok(clients_count() == 0 && clients_timeout_ms() == -1, "nobody is left to wait for");
    need((int)recv(theirs, text, 12, MSG_WAITALL));
    tap_ok(strcmp(text, "HTTP/1.1 503") == 0, "and each was told: %s", text);
    while (recv(theirs, text, sizeof text, 0) > 0)
        continue;
    tap_ok(send(theirs, "x", 1, MSG_NOSIGNAL) <= 1 && settle(theirs, true), "and has its end");
    close(theirs);
}

static int lowest_free(void)
{
    int fd = dup(0);

    close(fd);
    return fd;
}

int main(void)
{
    int nothing = lowest_free();

    listen_here();
    check_linger();
    check_linger_turn();
    check_stalled();
    check_accept();
    check_turns();
    check_port_of_each();
    check_errors_of_accept();
    check_room();
    check_slow_replies();
    check_stop();
    close(listen_fd);
    tap_ok(lowest_free() == nothing, "all that was accepted is closed");
    return tap_done();
}
