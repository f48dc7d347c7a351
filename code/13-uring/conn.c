#include "13-uring/conn.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "unsent.h"

static struct conn served = {.older = &served, .newer = &served};
static struct conn lingering = {.older = &lingering, .newer = &lingering};
static struct queue {
    struct conn *first, *last;
} waiting[LANES];
static int living, given_up;

struct conn *conn_new(int slot)
{
    struct conn *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->slot = slot;
    c->older = c->newer = c;
    living++;
    return c;
}

void conn_free(struct conn *c)
{
    conn_leave_queue(c);
    conn_give_piece(c);
    free(c->out);
    free(c->in);
    living -= c->slot >= 0;
    given_up -= c->slot < 0;
    free(c);
}

struct conn *conn_give_up(struct conn *c)
{
    struct conn *heir = conn_new(c->slot);

    if (heir == NULL)
        return NULL;
    heir->in = c->in;
    heir->have = c->have;
    c->in = NULL;
    c->slot = -1;
    c->ending = true;
    conn_leave_queue(c);
    living--;
    given_up++;
    return heir;
}

int conn_given_up(void)
{
    return given_up;
}

int conn_count(void)
{
    return living;
}

/* No longer than what has come: an idle connection has nothing, and a slow one little. */
bool conn_keep(struct conn *c, const char *bytes, size_t len)
{
    char *in = realloc(c->in, c->have + len);

    if (in == NULL)
        return false;
    memcpy(in + c->have, bytes, len);
    c->in = in;
    c->have = (unsigned short)(c->have + len);
    return true;
}

void conn_forget(struct conn *c, size_t used)
{
    c->have = (unsigned short)(c->have - used);
    if (c->have > 0) {
        memmove(c->in, c->in + used, c->have);
    } else {
        free(c->in);
        c->in = NULL;
    }
}

void conn_leave_queue(struct conn *c)
{
    c->older->newer = c->newer;
    c->newer->older = c->older;
    c->older = c->newer = c;
}

void conn_begin_step(struct conn *c, int ms)
{
    struct conn *queue = c->lingering ? &lingering : &served;

    c->deadline = now_ms() + ms;
    if (!c->lingering)
        c->since = now_ms();
    conn_leave_queue(c);
    c->newer = queue;
    c->older = queue->older;
    c->older->newer = queue->older = c;
}

/* Of the two that are first in their queues the one with less time left; NULL if there is none. */
static struct conn *first(void)
{
    struct conn *a = served.newer, *b = lingering.newer;

    if (a == &served || (b != &lingering && b->deadline < a->deadline))
        a = b;
    return a != &lingering ? a : NULL;
}

struct conn *conn_overdue(void)
{
    struct conn *c = first();

    return c != NULL && c->deadline <= now_ms() ? c : NULL;
}

int conn_timeout_ms(void)
{
    struct conn *c = first();

    if (c == NULL)
        return -1;
    long long left = c->deadline - now_ms();
    return left > 0 ? (int)left : 0;
}

static struct conn *first_idle(int ms)
{
    struct conn *c = served.newer;

    while (c != &served && c->out != NULL)
        c = c->newer;
    return c != &served && now_ms() - c->since >= ms ? c : NULL;
}

/* Whose reply is below the floor of unsent.h, or has not arrived. */
static struct conn *first_slow(struct conn *queue)
{
    long long before = now_ms() - FULL_STEP_MS;
    struct conn *c = queue->newer;

    while (c != queue && (c->since > before ||
                          (!c->lingering && (!c->held_up || c->out == NULL || c->out->is_read))))
        c = c->newer;
    return c != queue ? c : NULL;
}

struct conn *conn_slowest_reply(void)
{
    return first_slow(&served);
}

struct conn *conn_that_leaves(int ms)
{
    struct conn *c = first_idle(ms);

    c = c != NULL ? c : conn_slowest_reply();
    return c != NULL ? c : first_slow(&lingering);
}

void conn_stop_all(bool (*stop)(struct conn *c))
{
    for (struct conn *c = served.newer; c != &served; c = c->newer)
        if (!c->stopped && !stop(c))
            return;
}

/* No connection overtakes those that wait, or a few fast downloads would keep all pieces. */
bool conn_has_piece(struct conn *c, enum lane lane)
{
    struct queue *queue = &waiting[lane];

    if (c->piece != NULL && c->lane == lane)
        return true;
    conn_give_piece(c);
    c->lane = lane;
    if (queue->first == NULL && (c->piece = buffers_take_piece(lane)) != NULL)
        return true;
    c->in_flight++;
    c->next = NULL;
    if (queue->first == NULL)
        queue->first = c;
    else
        queue->last->next = c;
    queue->last = c;
    return false;
}

struct conn *conn_next_with_piece(void)
{
    for (int lane = 0; lane < LANES; lane++) {
        struct conn *c = waiting[lane].first;
        if (c != NULL && (c->piece = buffers_take_piece(lane)) != NULL) {
            waiting[lane].first = c->next;
            c->in_flight--;
            return c;
        }
    }
    return NULL;
}

void conn_give_piece(struct conn *c)
{
    if (c->piece != NULL)
        buffers_give_piece(c->lane, c->piece);
    c->piece = NULL;
}
