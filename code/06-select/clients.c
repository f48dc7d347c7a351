#include "06-select/clients.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "list.h"
#include "net.h"
#include "refusal.h"
#include "reply.h"
#include "stop.h"

/*
 * Deadlines without a heap or a tree: the time-out is the same for all, so a list ordered by
 * activity is ordered by deadline. (Nearly: a client back from AGAIN stands at the end with its old
 * deadline, and may be found late.) There is a list for each state: LINGERING clients, which are
 * looked at every 100 ms, would be out of order among those that have seconds.
 */
#define EMPTY(which) [which] = EMPTY_LIST(lists[which])
static struct list lists[LISTS] = {EMPTY(READING), EMPTY(SENDING), EMPTY(LINGERING), EMPTY(AGAIN),
                                   EMPTY(ENDED)};

static int count;
static int again;              /* clients in AGAIN */
static int turns;              /* ... that were there before the wait, and have a turn now */
static long long paused_until; /* by now_ms() */
static long long wait_began;   /* just before the wait of this pass: clients_timeout_ms() */
static int wait_ms = -1;       /* how long that was to take at most; -1: without limit */
/* Clients at the last shortage of descriptors; 0 once more than a quarter has left. */
static int count_at_shortage;
/* Since when no client could be ended, and when that was last asked; 0 as soon as one is added. */
static long long no_room_since, no_room_asked;

bool clients_pending;

/* The client behind this node of that list; NULL behind the last. */
static struct client *after(int list, const struct list *node)
{
    return node->next != &lists[list] ? CONTAINER_OF(node->next, struct client, node) : NULL;
}

static struct client *first(int list)
{
    return after(list, &lists[list]);
}

static void leave(struct client *c)
{
    list_remove(&c->node);
    again -= c->list == AGAIN;
}

static void move(struct client *c, int list)
{
    leave(c);
    c->list = list;
    list_append(&lists[list], &c->node);
    again += list == AGAIN;
}

/* Whether c may stand at the end of the list. */
static bool is_latest(const struct client *c, int list)
{
    const struct client *last = CONTAINER_OF(lists[list].prev, struct client, node);

    return list_is_empty(&lists[list]) || c->conn.deadline >= last->conn.deadline;
}

struct client *clients_add(int fd, const struct options *o)
{
    struct client *c = calloc(1, sizeof *c);

    if (c == NULL) {
        serve_refusal(fd);
        close(fd);
        return NULL;
    }
    conn_init(&c->conn, fd, o);
    list_init(&c->node);
    move(c, READING);
    count++;
    no_room_since = 0;
    return c;
}

void clients_free(struct client *c)
{
    leave(c);
    count--;
    free(c);
    if (count < count_at_shortage / 4 * 3 || count == 0) {
        count_at_shortage = 0;
        reply_keep_spare(false, -1);
    }
}

void clients_refuse(struct client *c)
{
    serve_refusal(c->conn.fd);
    close(c->conn.fd);
    clients_free(c);
}

bool clients_may_accept(void)
{
    return now_ms() >= paused_until;
}

void clients_accept(int listen_fd, const struct options *o, void (*begin)(struct client *c))
{
    clients_pending = clients_pending && !stopping;
    if (!clients_may_accept())
        return;
    for (int i = 0; clients_pending && i < ACCEPTS; i++) {
        /* After a shortage a descriptor is kept for a file first, or clients would only get 503. */
        int fd = reply_keep_spare(count_at_shortage > 0, o->docroot_fd)
                     ? accept_nonblocking(listen_fd)
                     : -1;
        if (fd >= 0) {
            struct client *c = clients_add(fd, o);
            if (c != NULL)
                begin(c);
        } else if (errno == EAGAIN || stopping) {
            clients_pending = false;
        } else if (accept_must_pause(errno)) {
            if (accept_lacks_room(errno)) {
                count_at_shortage = count;
                clients_make_room_or_pause(ACCEPT_PAUSE_MS); /* ends none that has just come */
            } else {
                clients_pause();
            }
            return;
        }
    }
}

static int list_for(const struct conn *c, enum want want)
{
    if (want == WANT_CLOSE)
        return ENDED;
    return want == WANT_AGAIN ? AGAIN : (int)c->state;
}

bool clients_handle(struct client *c, enum want (*turn)(struct conn *c))
{
    enum want before = c->want;

    if (c->list >= AGAIN)
        return false;
    enum want want = turn(&c->conn);
    int list = list_for(&c->conn, want);
    /* If its deadline is the latest of all now, the client moves to the end; else it stays. */
    if (list != c->list || is_latest(c, list))
        move(c, list);
    if (list < AGAIN)
        c->want = want;
    return c->want != before;
}

struct client *clients_next_again(void)
{
    struct client *c = turns > 0 ? first(AGAIN) : NULL;

    if (c != NULL) {
        turns--;
        move(c, c->conn.state);
    }
    return c;
}

struct client *clients_next_overdue(void)
{
    for (int list = 0; list < STATES; list++) {
        struct client *c = first(list);
        if (c != NULL && c->conn.deadline <= wait_began)
            return c;
    }
    return NULL;
}

void clients_end(struct client *c)
{
    move(c, ENDED);
}

struct client *clients_next_ended(void)
{
    return first(ENDED);
}

int clients_count(void)
{
    return count;
}

/* True if the client reads too little: send() would block, and less than UNSENT_PROOF bytes of this
 * reply are out. (One that waits for the disk has WANT_READ.) */
static bool is_held_up(const struct client *c)
{
    return c->want == WANT_WRITE && !c->conn.has_read;
}

static bool has_lingered(const struct client *c, int ms)
{
    return c->conn.linger.credit + ms / 10 <= LINGER_CREDIT(c->conn.options->timeout);
}

/* READING and SENDING are ordered by when the present step began: the first is the slowest. */
static struct client *slowest_client(int ms)
{
    long long now = now_ms();
    struct client *c = first(READING);

    if (c != NULL && now - conn_step_began(&c->conn) >= ms)
        return c;
    for (c = first(SENDING); c != NULL; c = after(SENDING, &c->node))
        if (now - conn_step_began(&c->conn) < FULL_STEP_MS)
            break;
        else if (is_held_up(c))
            return c;
    for (c = first(LINGERING); c != NULL; c = after(LINGERING, &c->node))
        if (has_lingered(c, FULL_STEP_MS))
            return c;
    return NULL;
}

static bool one_may_have_to_leave(void)
{
    struct client *c = first(SENDING);

    while (c != NULL && !is_held_up(c))
        c = after(SENDING, &c->node);
    return c != NULL || first(LINGERING) != NULL;
}

static enum room look_for_room(int ms)
{
    if (slowest_client(ms) != NULL)
        return ROOM;
    if (no_room_since == 0 || now_ms() - no_room_asked > FULL_STEP_MS) /* else another shortage */
        no_room_since = now_ms();
    no_room_asked = now_ms();
    return now_ms() - no_room_since < 2 * FULL_STEP_MS && one_may_have_to_leave() ? SOON : NONE;
}

enum room clients_make_room(int ms)
{
    enum room room = look_for_room(ms);

    if (room == ROOM)
        clients_end(slowest_client(ms));
    return room;
}

void clients_pause(void)
{
    paused_until = now_ms() + ACCEPT_PAUSE_MS;
}

bool clients_pause_if_room_soon(int most)
{
    bool waits = count >= most && look_for_room(0) == SOON;

    if (waits)
        clients_pause();
    return waits;
}

enum room clients_make_room_or_pause(int ms)
{
    enum room room = clients_make_room(ms);

    if (room != ROOM)
        clients_pause();
    return room;
}

/* After a stall. (READING: conn_expire() looks whether something has come.) */
static void renew_overdue(void)
{
    long long now = now_ms();
    struct client *next, *c = first(SENDING);

    for (; c != NULL && c->conn.deadline <= now; c = next) {
        next = after(SENDING, &c->node);
        if (c->want != WANT_WRITE || c->conn.renewed)
            continue;
        conn_begin_step(&c->conn);
        c->conn.renewed = true;
        move(c, SENDING);
    }
}

int clients_timeout_ms(void)
{
    if (was_stalled(wait_began, wait_ms))
        renew_overdue();
    long long now = now_ms(), until = clients_pending ? paused_until : LLONG_MAX;
    wait_began = now;
    turns = again; /* clients that join AGAIN after the wait have had a turn */
    for (int list = 0; list < STATES; list++)
        if (first(list) != NULL && first(list)->conn.deadline < until)
            until = first(list)->conn.deadline;
    if (again > 0 || until <= now)
        wait_ms = 0;
    else
        wait_ms = until < LLONG_MAX ? (int)(until - now) : -1;
    return wait_ms;
}

void clients_stop(void)
{
    static bool stopped;
    struct client *c;

    if (stopped)
        return;
    stopped = true;
    stop_listening();
    for (int list = 0; list < STATES; list++)
        while ((c = first(list)) != NULL)
            move(c, AGAIN);
}
