#include "06-select/clients.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "refusal.h"
#include "stop.h"

#define SHUT_MS 100 /* without accepting, after descriptors or memory ran out */

/* region: queues */
/*
 * Deadlines without a heap or a tree: the time-out is the same for all, so whoever was active last
 * has the latest deadline, and a queue ordered by activity is ordered by deadline. To look at its
 * head, to move a client to its end: O(1). Those who have asked for nothing yet, or not to the end,
 * are apart from those being answered: a step begins when one becomes the other, so both queues
 * keep their order. Those that linger are looked at ten times a second, and have a queue of their
 * own. Those for whom the disk is at work have none.
 */
static struct client asking = {.older = &asking, .newer = &asking};
static struct client answered = {.older = &answered, .newer = &answered};
static struct client lingering = {.older = &lingering, .newer = &lingering};
static struct client undated = {.older = &undated, .newer = &undated};
static struct client *const dated[] = {&asking, &answered, &lingering};
/* endregion: queues */

static struct client again = {.previous = &again, .next = &again};
static struct client ended = {.previous = &ended, .next = &ended};

static int count, in_again;
static long long shut_until; /* by conn_now() */

/* region: by-activity */
static void leave_queue(struct client *c)
{
    c->older->newer = c->newer;
    c->newer->older = c->older;
}

static struct client *queue_of(const struct conn *c)
{
    if (c->lingering)
        return &lingering;
    if (c->deadline == CONN_NEVER)
        return &undated;
    return c->out != NULL ? &answered : &asking;
}

static void join_queue(struct client *c)
{
    struct client *queue = queue_of(&c->conn);

    c->newer = queue;
    c->older = queue->older;
    c->older->newer = queue->older = c;
}
/* endregion: by-activity */

static void move_to(struct client *c, enum list list)
{
    if (c->list != NOWHERE) {
        c->previous->next = c->next;
        c->next->previous = c->previous;
    }
    in_again += (list == AGAIN) - (c->list == AGAIN);
    c->list = list;
    if (list == NOWHERE)
        return;
    struct client *head = list == AGAIN ? &again : &ended;
    c->next = head;
    c->previous = head->previous;
    c->previous->next = head->previous = c;
}

static struct client *add(int fd, const struct options *o, bool blocks)
{
    struct client *c = calloc(1, sizeof *c);

    if (c == NULL || (blocks && conn_init(&c->conn, fd, o) < 0)) {
        serve_refusal(fd);
        close(fd);
        free(c);
        return NULL;
    }
    if (!blocks)
        conn_adopt(&c->conn, fd, o);
    c->want = WANT_READ;
    join_queue(c);
    count++;
    return c;
}

struct client *clients_add(int fd, const struct options *o)
{
    return add(fd, o, true);
}

struct client *clients_adopt(int fd, const struct options *o)
{
    return add(fd, o, false);
}

void clients_refuse(struct client *c)
{
    serve_refusal(c->conn.fd);
    clients_free(c);
}

/* region: handle */
bool clients_handle(struct client *c)
{
    enum want before = c->want;
    const struct client *queue = queue_of(&c->conn);
    long long deadline = c->conn.deadline;

    if (c->list != NOWHERE)
        return false;
    /* region: one-turn */
    enum want want = conn_handle(&c->conn);
    bool moved = queue_of(&c->conn) != queue;
    if (moved || c->conn.deadline != deadline) {
        leave_queue(c);
        join_queue(c);
    }
    if (want == WANT_AGAIN || want == WANT_CLOSE)
        move_to(c, want == WANT_AGAIN ? AGAIN : ENDED);
    else
        c->want = want;
    /* endregion: one-turn */
    return c->want != before;
}
/* endregion: handle */

int clients_again(void)
{
    return in_again;
}

struct client *clients_next_again(void)
{
    struct client *c = again.next;

    if (c == &again)
        return NULL;
    move_to(c, NOWHERE);
    return c;
}

void clients_end(struct client *c)
{
    move_to(c, ENDED);
}

/* region: overdue */
static void end_overdue_of(struct client *queue, long long now)
{
    for (struct client *c = queue->newer; c != queue && c->conn.deadline <= now; c = c->newer)
        clients_end(c);
}

void clients_overdue(void)
{
    long long now = conn_now();

    end_overdue_of(&asking, now);
    end_overdue_of(&answered, now);
    for (struct client *c = lingering.newer; c != &lingering && c->conn.deadline <= now;
         c = c->newer)
        if (c->list == NOWHERE)
            move_to(c, AGAIN);
}
/* endregion: overdue */

struct client *clients_next_ended(void)
{
    return ended.next != &ended ? ended.next : NULL;
}

void clients_free(struct client *c)
{
    move_to(c, NOWHERE);
    leave_queue(c);
    count--;
    conn_end(&c->conn);
    free(c);
}

int clients_count(void)
{
    return count;
}

/* region: patience */
int clients_patience(bool guests)
{
    long long until = -1, now = conn_now();

    if (in_again > 0 || (guests && shut_until <= now))
        return 0;
    if (guests)
        until = shut_until;
    for (size_t i = 0; i < sizeof dated / sizeof *dated; i++) {
        const struct client *oldest = dated[i]->newer;
        if (oldest != dated[i] && (until < 0 || oldest->conn.deadline < until))
            until = oldest->conn.deadline;
    }
    return until < 0 ? -1 : until > now ? (int)(until - now) : 0;
}
/* endregion: patience */

/* region: room */
/* Ends whoever has been the longest without asking for anything, if that was for `ms`. */
static bool end_oldest(int ms)
{
    struct client *c = asking.newer;

    while (c != &asking && c->list == ENDED) /* room that has been made already */
        c = c->newer;
    if (c == &asking || c->conn.deadline - c->conn.options->timeout * 1000LL > conn_now() - ms)
        return false;
    clients_end(c);
    return true;
}

bool clients_make_room(void)
{
    return end_oldest(0);
}

/* Not one who has just come: the request may be on its way. */
bool clients_lack_room(void)
{
    if (end_oldest(SHUT_MS))
        return true;
    shut_until = conn_now() + SHUT_MS;
    return false;
}
/* endregion: room */

bool clients_may_come(void)
{
    return conn_now() >= shut_until;
}

static void once_more(struct client *queue)
{
    for (struct client *c = queue->newer; c != queue; c = c->newer)
        if (c->list == NOWHERE)
            move_to(c, AGAIN);
}

void clients_stop(void)
{
    static bool stopped;

    if (stopped)
        return;
    stopped = true;
    stop_listening();
    conn_stop();
    for (size_t i = 0; i < sizeof dated / sizeof *dated; i++)
        once_more(dated[i]);
}
