#include "13-uring/conn.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "unsent.h"

static struct list lists[ENDING] = {EMPTY_LIST(lists[RECEIVING]), EMPTY_LIST(lists[REPLYING]),
                                    EMPTY_LIST(lists[LINGERING])};
int uring_conns;

/* The connection behind this node of the list; NULL behind the last. */
static struct uring_conn *behind(const struct list *node, enum uring_state state)
{
    return node->next != &lists[state] ? CONTAINER_OF(node->next, struct uring_conn, node) : NULL;
}

struct uring_conn *uring_conn_new(int slot)
{
    struct uring_conn *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->slot = slot;
    list_init(&c->node);
    uring_conns++;
    return c;
}

void uring_conn_free(struct uring_conn *c)
{
    list_remove(&c->node);
    free(c->in);
    free(c);
    uring_conns--;
}

/* Allocates what has come and no more, so an idle connection has no buffer. */
bool uring_conn_keep(struct uring_conn *c, const char *bytes, size_t len)
{
    char *in = realloc(c->in, c->have + len);

    if (in == NULL)
        return false;
    memcpy(in + c->have, bytes, len);
    c->in = in;
    c->have = (unsigned short)(c->have + len);
    return true;
}

void uring_conn_forget(struct uring_conn *c, size_t used)
{
    c->have = (unsigned short)(c->have - used);
    if (c->have > 0) {
        memmove(c->in, c->in + used, c->have);
    } else {
        free(c->in);
        c->in = NULL;
    }
}

void uring_conn_leave_job(struct uring_conn *c)
{
    struct uring_job *job = c->job;

    c->job = NULL;
    job->conn = NULL;
    c->in_flight -= job->at_disk;
    if (!job->at_disk)
        uring_job_free(job);
}

void uring_conn_begin_step(struct uring_conn *c, enum uring_state state, int ms)
{
    long long now = now_ms();

    if (c->state != LINGERING)
        c->since = now;
    c->deadline = now + ms;
    c->state = state;
    c->no_wait = c->renewed = false;
    list_remove(&c->node);
    list_append(&lists[state], &c->node);
}

void uring_conns_renew_overdue(int ms)
{
    long long now = now_ms();
    struct uring_conn *next, *c = behind(&lists[REPLYING], REPLYING);

    for (; c != NULL && c->deadline <= now; c = next) {
        next = behind(&c->node, REPLYING);
        if (!c->held_up || c->renewed)
            continue;
        uring_conn_begin_step(c, REPLYING, ms);
        c->renewed = true;
    }
}

struct uring_conn *uring_conn_longest_idle(void)
{
    return behind(&lists[RECEIVING], RECEIVING);
}

struct uring_conn *uring_conn_next_due(void)
{
    struct uring_conn *due = NULL;

    for (enum uring_state state = RECEIVING; state < ENDING; state++) {
        struct uring_conn *c = behind(&lists[state], state);
        if (c != NULL && (due == NULL || c->deadline < due->deadline))
            due = c;
    }
    return due;
}

/* Whether the step in hand, or LINGERING, has lasted `ms`. */
static bool has_lasted(const struct uring_conn *c, int ms)
{
    return now_ms() - c->since >= ms;
}

struct uring_conn *uring_conn_slowest(void)
{
    struct uring_conn *c = behind(&lists[REPLYING], REPLYING);

    while (c != NULL && has_lasted(c, FULL_STEP_MS)) {
        if (c->held_up && c->job->sent < UNSENT_PROOF)
            return c;
        c = behind(&c->node, REPLYING);
    }
    return NULL;
}

struct uring_conn *uring_conn_that_leaves(int ms)
{
    struct uring_conn *c = uring_conn_longest_idle();

    if (c != NULL && has_lasted(c, ms))
        return c;
    if ((c = uring_conn_slowest()) != NULL)
        return c;
    c = behind(&lists[LINGERING], LINGERING);
    while (c != NULL && !has_lasted(c, FULL_STEP_MS))
        c = behind(&c->node, LINGERING);
    return c;
}
