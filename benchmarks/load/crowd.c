/* Slow, slowly reading, half-dead and idle clients; see crowd.h. */
#include "crowd.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "clock.h"
#include "run.h"

enum member_state {
    MEMBER_AWAY, /* no connection; another attempt after a pause */
    MEMBER_CONNECTING,
    MEMBER_SENDING, /* slow: byte by byte */
    MEMBER_READING, /* slow, slow read: likewise */
    MEMBER_HOLDING  /* half-dead, idle: nothing more to say */
};

struct crowd_member {
    enum watch_role role; /* first: see clock.h */
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
enum { SLOW_RECEIVE_BUFFER = 1, DRIPS = 16 };

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

void crowd_report_loss(struct crowd_report *r, uint64_t at)
{
    r->last_loss_ns = at;
    if (r->first_loss_ns == 0)
        r->first_loss_ns = at;
}

void crowd_report_add(struct crowd_report *sum, const struct crowd_report *r)
{
    sum->wanted += r->wanted;
    sum->established += r->established;
    sum->refused += r->refused;
    sum->timed_out += r->timed_out;
    sum->served += r->served;
    sum->answered += r->answered;
    sum->dropped += r->dropped;
    sum->reset += r->reset;
    sum->reconnects += r->reconnects;
    sum->held += r->held;
    if (sum->first_loss_ns == 0 || (r->first_loss_ns && r->first_loss_ns < sum->first_loss_ns))
        sum->first_loss_ns = r->first_loss_ns;
    if (r->last_loss_ns > sum->last_loss_ns)
        sum->last_loss_ns = r->last_loss_ns;
}

/* It did not get what it came for; *kind counts how. */
static void lose(struct engine *e, struct crowd_member *m, uint64_t *kind, uint64_t now)
{
    uint64_t at = now - e->crowd.begun;

    (*kind)++;
    crowd_report_loss(report_of(e, m), at ? at : 1); /* 0 would mean that nothing was lost */
    leave(e, m, now);
}

static void refused(struct engine *e, struct crowd_member *m, uint64_t now)
{
    settle(e, m);
    lose(e, m, &report_of(e, m)->refused, now);
}

/* errno: how the server ended it. */
static void dropped(struct engine *e, struct crowd_member *m, int error, uint64_t now)
{
    report_of(e, m)->reset += error == ECONNRESET;
    lose(e, m, &report_of(e, m)->dropped, now);
}

static void join(struct engine *e, struct crowd_member *m, uint64_t now)
{
    struct crowd *crowd = &e->crowd;

    m->url = &e->urls->items[random_below(&crowd->random, (uint32_t)e->urls->count)];
    m->sent = 0;
    m->state = MEMBER_CONNECTING;
    reply_begin(&m->reply, e->options->head);
    m->fd = dial(&e->urls->endpoints[m->url->endpoint], &e->sources,
                 m->kind == CROWD_SLOW || m->kind == CROWD_SLOW_READ ? SLOW_RECEIVE_BUFFER : 0);
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

/* A new connection takes so few bytes at once; if not, it is dead already. */
static bool say(struct engine *e, struct crowd_member *m, size_t length, uint64_t now)
{
    if (send(m->fd, m->url->request, length, MSG_NOSIGNAL) == (ssize_t)length)
        return true;
    dropped(e, m, errno, now);
    return false;
}

static void begin_slow_read(struct engine *e, struct crowd_member *m, uint64_t now)
{
    if (!say(e, m, m->url->request_length, now))
        return;
    m->state = MEMBER_READING;
    deadline_set(&e->crowd.drips, &m->deadline, now);
}

static void begin_holding(struct engine *e, struct crowd_member *m, uint64_t now)
{
    size_t half = m->kind == CROWD_HALF_DEAD ? m->url->request_length / 2 : 0;

    m->state = MEMBER_HOLDING;
    deadline_clear(&m->deadline);
    if (half > 0 && !say(e, m, half, now))
        return;
    if (watch(e->epoll_fd, m->fd, m, &m->watched, EPOLLIN | EPOLLRDHUP) < 0)
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
    else if (m->kind == CROWD_SLOW_READ)
        begin_slow_read(e, m, now);
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
    else if (m->reply.received > 0)
        lose(e, m, &report_of(e, m)->answered, now);
    else
        dropped(e, m, n < 0 ? errno : 0, now);
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
        dropped(e, m, errno, now);
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
        dropped(e, m, n < 0 ? errno : 0, now);
    } else if (result == REPLY_MORE) {
        deadline_set(&e->crowd.drips, &m->deadline, now);
    } else if (result == REPLY_COMPLETE && m->reply.response.status / 100 == 2) {
        report_of(e, m)->served++;
        leave(e, m, now);
    } else {
        lose(e, m, &report_of(e, m)->answered, now);
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

/* How many are to have begun by now. */
static size_t due(const struct crowd *crowd, uint64_t now)
{
    double past = (double)(now - crowd->begun);

    if (past >= (double)crowd->count * crowd->join_ns)
        return crowd->count;
    return (size_t)(past / crowd->join_ns) + 1;
}

static void join_due(struct engine *e, uint64_t now)
{
    size_t n = due(&e->crowd, now);
    while (e->crowd.joined < n)
        join(e, &e->crowd.members[e->crowd.joined++], now);
}

void crowd_expire(struct engine *e, uint64_t now)
{
    struct deadline *d;

    join_due(e, now);
    /* Some at a time: the replies that are measured must not wait for a crowd's bytes. */
    for (int i = 0; i < DRIPS && (d = deadline_expired(&e->crowd.drips, now)); i++)
        drip(e, DEADLINE_OWNER(d, struct crowd_member), now);
    while ((d = deadline_expired(&e->crowd.timeouts, now))) {
        struct crowd_member *m = DEADLINE_OWNER(d, struct crowd_member);
        settle(e, m);
        lose(e, m, &report_of(e, m)->timed_out, now);
    }
}

uint64_t crowd_next(const struct crowd *crowd)
{
    uint64_t drip_at = deadline_next(&crowd->drips);
    uint64_t timeout_at = deadline_next(&crowd->timeouts);
    uint64_t next = drip_at < timeout_at ? drip_at : timeout_at;
    uint64_t join_at = crowd->begun + (uint64_t)((double)crowd->joined * crowd->join_ns);
    return crowd->joined < crowd->count && join_at < next ? join_at : next;
}

/* All kinds come at all times, however many the server takes. */
static void shuffle(struct crowd *crowd)
{
    for (size_t i = crowd->count; i > 1; i--) {
        size_t other = random_below(&crowd->random, (uint32_t)i);
        struct crowd_member m = crowd->members[i - 1];
        crowd->members[i - 1] = crowd->members[other];
        crowd->members[other] = m;
    }
}

int crowd_init(struct engine *e, const uint64_t wanted[CROWD_KINDS])
{
    struct crowd *crowd = &e->crowd;
    const struct options *o = e->options;
    uint64_t count = 0;

    for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++)
        count += wanted[kind];
    deadline_queue_init(&crowd->drips, o->drip_ns);
    deadline_queue_init(&crowd->timeouts, o->timeout_ns);
    crowd->random = ~o->seed;
    crowd->join_ns = o->ramp > 0 ? (double)NS_PER_S / o->ramp : 0;
    crowd->members = calloc(count + 1, sizeof *crowd->members);
    if (!crowd->members)
        return -1;
    for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++) {
        crowd->reports[kind].wanted = wanted[kind];
        for (uint64_t i = 0; i < wanted[kind]; i++)
            crowd->members[crowd->count++] =
                (struct crowd_member){.role = WATCH_CROWD, .kind = kind, .fd = -1};
    }
    shuffle(crowd);
    crowd->unsettled = crowd->count;
    return 0;
}

void crowd_begin(struct engine *e, uint64_t now)
{
    e->crowd.begun = now;
    join_due(e, now);
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

void crowd_note_established(struct crowd *crowd)
{
    for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++)
        crowd->reports[kind].established = crowd_connected(crowd, kind);
}

void crowd_note_held(struct crowd *crowd)
{
    for (enum crowd_kind kind = 0; kind < CROWD_KINDS; kind++)
        crowd->reports[kind].held = crowd_connected(crowd, kind);
}

void crowd_hang_up(struct crowd *crowd)
{
    const struct linger reset = {.l_onoff = 1};

    for (size_t i = 0; i < crowd->count; i++) {
        /* If it cannot be set, the usual close is as good. */
        if (crowd->members[i].fd >= 0)
            (void)setsockopt(crowd->members[i].fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        disconnect(&crowd->members[i]);
    }
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
