#include "13-uring/conn.h"

#include <stdlib.h>
#include <string.h>

#include "13-uring/buffers.h"
#include "clock.h"
#include "unsent.h"

static struct conn served = {.older = &served, .newer = &served};
static struct conn lingering = {.older = &lingering, .newer = &lingering};
static struct conn *first_waiting, *last_waiting;
static int living;

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
    free(c);
    living--;
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

/* Nobody overtakes those that wait, or a few fast downloads would keep all pieces to themselves. */
bool conn_has_piece(struct conn *c)
{
    if (c->piece == NULL && first_waiting == NULL)
        c->piece = buffers_take_piece();
    if (c->piece != NULL)
        return true;
    c->in_flight++;
    c->next = NULL;
    if (first_waiting == NULL)
        first_waiting = c;
    else
        last_waiting->next = c;
    last_waiting = c;
    return false;
}

struct conn *conn_next_with_piece(void)
{
    struct conn *c = first_waiting;

    if (c == NULL || (c->piece = buffers_take_piece()) == NULL)
        return NULL;
    first_waiting = c->next;
    c->in_flight--;
    return c;
}

void conn_give_piece(struct conn *c)
{
    if (c->piece != NULL)
        buffers_give_piece(c->piece);
    c->piece = NULL;
}
