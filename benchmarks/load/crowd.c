/* Slow, half-dead and idle clients; see crowd.h. */
#include "crowd.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "dial.h"
#include "engine.h"
#include "random.h"

enum member_state {
    MEMBER_AWAY, /* no connection; another attempt after a pause */
    MEMBER_CONNECTING,
    MEMBER_SENDING, /* slow: byte by byte */
    MEMBER_READING, /* slow: likewise */
    MEMBER_HOLDING  /* half-dead, idle: nothing more to say */
};

struct crowd_member {
    enum watch_role role; /* first: see watch.h */
    enum crowd_kind kind;
    enum member_state state;
    bool settled; /* its first attempt to connect is decided */
    int fd;
    uint32_t watched;
    uint32_t sent;
    const struct url *url;
    struct reply reply;
    struct deadline deadline;
};

/*
 * Slow readers ask for the smallest receive buffer the kernel allows: otherwise it would take
 * the reply on their behalf, and the server would never notice that nobody reads.
 */
enum { SLOW_RECEIVE_BUFFER = 1 };

static struct crowd_report *report_of(struct engine *e, const struct crowd_member *m)
{
    return &e->crowd.reports[m->kind];
}

static void disconnect(struct crowd_member *m)
{
    if (m->fd >= 0)
        close(m->fd);
    m->fd = -1;
    m->watched = 0;
}

/* The connection is over, or never came to be: try again after a pause. */
static void leave(struct engine *e, struct crowd_member *m, uint64_t now)
{
    disconnect(m);
    m->state = MEMBER_AWAY;
    deadline_set(&e->crowd.drips, &m->deadline, now);
}

static void settle(struct engine *e, struct crowd_member *m)
{
    e->crowd.unsettled -= !m->settled;
    m->settled = true;
}

static void refused(struct engine *e, struct crowd_member *m, uint64_t now)
{
    report_of(e, m)->refused++;
    settle(e, m);
    leave(e, m, now);
}

static void dropped(struct engine *e, struct crowd_member *m, uint64_t now)
{
    report_of(e, m)->dropped++;
    leave(e, m, now);
}

static void join(struct engine *e, struct crowd_member *m, uint64_t now)
{
    struct crowd *crowd = &e->crowd;

    m->url = &e->urls->items[random_below(&crowd->random, (uint32_t)e->urls->count)];
    m->sent = 0;
    m->state = MEMBER_CONNECTING;
    reply_begin(&m->reply, e->options->head);
    m->fd = dial(&e->urls->endpoints[m->url->endpoint], &e->sources,
                 m->kind == CROWD_SLOW ? SLOW_RECEIVE_BUFFER : 0);
    if (m->fd < 0 || watch(e->epoll_fd, m->fd, m, &m->watched, EPOLLOUT | EPOLLONESHOT) < 0) {
        refused(e, m, now);
        return;
    }
    deadline_set(&crowd->timeouts, &m->deadline, now);
}

/* The slow one lives by its drips alone: epoll, armed once, will not report it again. */
static void begin_slow(struct engine *e, struct crowd_member *m, uint64_t now)
{
    int on = 1;
    /* Without this Nagle's algorithm would gather the bytes of a fast drip into packets. */
    if (setsockopt(m->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0) {
        refused(e, m, now);
        return;
    }
    m->state = MEMBER_SENDING;
    deadline_set(&e->crowd.drips, &m->deadline, now);
}

static void begin_holding(struct engine *e, struct crowd_member *m, uint64_t now)
{
    size_t half = m->kind == CROWD_HALF_DEAD ? m->url->request_length / 2 : 0;

    m->state = MEMBER_HOLDING;
    deadline_clear(&m->deadline);
    /* A new connection takes so few bytes at once; if not, it is dead already. */
    if (half > 0 && send(m->fd, m->url->request, half, MSG_NOSIGNAL) != (ssize_t)half)
        dropped(e, m, now);
    else if (watch(e->epoll_fd, m->fd, m, &m->watched, EPOLLIN | EPOLLRDHUP) < 0)
        refused(e, m, now);
}

static void connected(struct engine *e, struct crowd_member *m, uint64_t now)
{
    if (dial_result(m->fd) != 0) {
        refused(e, m, now);
        return;
    }
    settle(e, m);
    if (m->kind == CROWD_SLOW)
        begin_slow(e, m, now);
    else
        begin_holding(e, m, now);
}

/* Something came to one that had asked for nothing: a 408, perhaps, or the end. */
static void hold(struct engine *e, struct crowd_member *m, uint64_t now)
{
    ssize_t n = recv(m->fd, e->scratch, SCRATCH_SIZE, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        m->reply.received += (uint64_t)n;
    else if (m->reply.received > 0) {
        report_of(e, m)->answered++;
        leave(e, m, now);
    } else {
        dropped(e, m, now);
    }
}

void crowd_on_event(struct engine *e, struct crowd_member *m)
{
    uint64_t now = clock_now();
    if (m->state == MEMBER_CONNECTING)
        connected(e, m, now);
    else if (m->state == MEMBER_HOLDING)
        hold(e, m, now);
}

/* Sends the next byte, unless the server has already answered or gone. */
static void drip_send(struct engine *e, struct crowd_member *m, uint64_t now)
{
    char byte;
    ssize_t early = recv(m->fd, &byte, 1, MSG_PEEK);
    ssize_t n = 0;

    if (early >= 0)
        m->state = MEMBER_READING;
    else if (errno == EAGAIN || errno == EINTR)
        n = send(m->fd, m->url->request + m->sent, 1, MSG_NOSIGNAL);
    if ((early < 0 && errno != EAGAIN && errno != EINTR) ||
        (n < 0 && errno != EAGAIN && errno != EINTR)) {
        dropped(e, m, now);
        return;
    }
    m->sent += n > 0;
    if (m->sent == m->url->request_length)
        m->state = MEMBER_READING;
    deadline_set(&e->crowd.drips, &m->deadline, now);
}

static void drip_read(struct engine *e, struct crowd_member *m, uint64_t now)
{
    char byte;
    ssize_t n = recv(m->fd, &byte, 1, 0);
    enum reply_result result = REPLY_MORE;

    if (n > 0)
        result = reply_feed(&m->reply, &byte, 1);
    else if (n == 0)
        result = reply_end(&m->reply);
    if ((n < 0 && errno != EAGAIN && errno != EINTR) || result == REPLY_SHORT) {
        dropped(e, m, now);
    } else if (result == REPLY_MORE) {
        deadline_set(&e->crowd.drips, &m->deadline, now);
    } else {
        bool good = result == REPLY_COMPLETE && m->reply.response.status / 100 == 2;
        *(good ? &report_of(e, m)->served : &report_of(e, m)->answered) += 1;
        leave(e, m, now);
    }
}

static void drip(struct engine *e, struct crowd_member *m, uint64_t now)
{
    switch (m->state) {
    case MEMBER_AWAY:
        report_of(e, m)->reconnects++;
        join(e, m, now);
        break;
    case MEMBER_SENDING:
        drip_send(e, m, now);
        break;
    case MEMBER_READING:
        drip_read(e, m, now);
        break;
    case MEMBER_CONNECTING: /* these two do not drip */
    case MEMBER_HOLDING:
        break;
    }
}

void crowd_expire(struct engine *e, uint64_t now)
{
    struct deadline *d;

    while ((d = deadline_expired(&e->crowd.drips, now)))
        drip(e, DEADLINE_OWNER(d, struct crowd_member), now);
    while ((d = deadline_expired(&e->crowd.timeouts, now))) {
        struct crowd_member *m = DEADLINE_OWNER(d, struct crowd_member);
        report_of(e, m)->timed_out++;
        settle(e, m);
        leave(e, m, now);
    }
}

uint64_t crowd_next(const struct crowd *crowd)
{
    uint64_t drip_at = deadline_next(&crowd->drips);
    uint64_t timeout_at = deadline_next(&crowd->timeouts);
    return drip_at < timeout_at ? drip_at : timeout_at;
}

int crowd_init(struct engine *e)
{
    struct crowd *crowd = &e->crowd;
    const struct options *o = e->options;
    const uint64_t wanted[CROWD_KINDS] = {o->slow, o->half_dead, o->idle};

    deadline_queue_init(&crowd->drips, o->drip_ns);
    deadline_queue_init(&crowd->timeouts, o->timeout_ns);
    crowd->random = ~o->seed;
    crowd->members = calloc(o->slow + o->half_dead + o->idle + 1, sizeof *crowd->members);
    if (!crowd->members)
        return -1;
    for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++) {
        crowd->reports[kind].wanted = wanted[kind];
        for (uint64_t i = 0; i < wanted[kind]; i++)
            crowd->members[crowd->count++] =
                (struct crowd_member){.role = WATCH_CROWD, .kind = kind, .fd = -1};
    }
    crowd->unsettled = crowd->count;
    return 0;
}

void crowd_begin(struct engine *e, uint64_t now)
{
    for (size_t i = 0; i < e->crowd.count; i++)
        join(e, &e->crowd.members[i], now);
}

bool crowd_is_settled(const struct crowd *crowd)
{
    return crowd->unsettled == 0;
}

uint64_t crowd_connected(const struct crowd *crowd, enum crowd_kind kind)
{
    uint64_t n = 0;
    for (size_t i = 0; i < crowd->count; i++)
        n += crowd->members[i].kind == kind && crowd->members[i].state >= MEMBER_SENDING;
    return n;
}

void crowd_free(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++) {
        disconnect(&crowd->members[i]);
        reply_free(&crowd->members[i].reply);
    }
    free(crowd->members);
    crowd->members = NULL;
    crowd->count = 0;
}
