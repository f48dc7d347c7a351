/*
 * The measured client: one request after another through connect, send and receive.
 *
 * What keeps it cheap: the request is sent at once, without asking epoll whether it may be (a
 * TCP handshake over loopback is usually done when connect() returns); a kept-alive connection
 * stays in epoll's set, untouched; a small reply costs one recv(); one reading of the clock both
 * ends a request and starts the next.
 *
 * Level-triggered epoll reports what is left, so no handler has to read until EAGAIN. A handler
 * changes only its own client, and each client has one descriptor: no event of the same batch
 * can be stale.
 */
#include "client.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "clock.h"
#include "record.h"
#include "run.h"

/* A fast download must give way to the others after this many full buffers. */
enum { READ_BUDGET = 4 };

enum { RECEIVING = EPOLLIN | EPOLLRDHUP };

void client_init(struct client *c)
{
    *c = (struct client){.role = WATCH_CLIENT, .state = CLIENT_FREE, .fd = -1};
}

bool client_in_flight(const struct client *c)
{
    return c->state >= CLIENT_CONNECTING && c->state <= CLIENT_READING;
}

static void disconnect(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd); /* nothing was written that a failing close could lose */
    c->fd = -1;
    c->watched = 0;
    c->used = false;
}

void client_free(struct client *c)
{
    disconnect(c);
    reply_free(&c->reply);
}

/* The request in flight has come to its end. */
static void finish(struct engine *e, struct client *c, enum fetch_error error, uint64_t now)
{
    e->in_flight--;
    deadline_clear(&c->deadline);
    record_fetch(e, c, error, now);
}

static void fail(struct engine *e, struct client *c, enum fetch_error error, uint64_t now)
{
    finish(e, c, error, now);
    disconnect(c);
    c->state = CLIENT_RESTING;
    deadline_set(&e->rests, &c->deadline, now);
}

/* Whatever the head says: may the next request go over this connection? */
static bool is_persistent(const struct client *c)
{
    return c->reply.response.persistent && c->reply.body.kind != BODY_BY_CLOSE &&
           c->sent == c->url->request_length;
}

/*
 * A server that has announced the close is left to close first: whoever closes first keeps the
 * port in TIME_WAIT, and hammer would run out of ports. If the end of the stream has been seen
 * already, or the server would keep the connection and we do not want it, we close.
 */
static void complete(struct engine *e, struct client *c, bool end_seen, uint64_t now)
{
    bool persistent = is_persistent(c);
    bool wanted = e->options->keep_alive;

    finish(e, c, record_judge(e, c), now);
    c->used = true;
    if (wanted && (end_seen || !persistent))
        record_tally(e, c)->closed_by_server++;
    if (!persistent && !end_seen && watch(e->epoll_fd, c->fd, c, &c->watched, RECEIVING) == 0) {
        c->state = CLIENT_LINGERING;
        deadline_set(&e->timeouts, &c->deadline, now);
        return;
    }
    if (end_seen || !wanted || !persistent)
        disconnect(c);
    client_next(e, c, now);
}

static void connect_and_send(struct engine *e, struct client *c);

/*
 * A server may close an idle connection at any moment, so a request on an old connection may
 * meet the close half-way. That is the protocol's race, not an error: send it again, once, on a
 * new connection. Its time goes on from the first attempt.
 */
static bool send_again(struct engine *e, struct client *c)
{
    if (!c->used || c->reply.received > 0)
        return false;
    record_tally(e, c)->closed_by_server++;
    record_tally(e, c)->resent++;
    disconnect(c);
    connect_and_send(e, c);
    return true;
}

/* A system call on the connection has failed with `error`. */
static void broken(struct engine *e, struct client *c, int error)
{
    if (c->state == CLIENT_CONNECTING)
        fail(e, c, dial_error(error), clock_now());
    else if (!send_again(e, c))
        fail(e, c, error == ENOMEM || error == ENOBUFS ? FETCH_NO_RESOURCES : FETCH_RESET,
             clock_now());
}

static void want(struct engine *e, struct client *c, uint32_t events)
{
    if (watch(e->epoll_fd, c->fd, c, &c->watched, events) < 0)
        fail(e, c, FETCH_NO_RESOURCES, clock_now());
}

/*
 * An acknowledgement may wait for something to travel with, 40 ms on Linux; not with this. The
 * kernel forgets it (tcp(7)), so it is said again before every wait for a reply.
 */
static void acknowledge_at_once(const struct engine *e, const struct client *c)
{
    int on = 1;

    if (e->options->quickack) /* if the socket is no more, recv() says so */
        setsockopt(c->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

/* `now`: when the connection was seen to be established, if it turns out that it is. */
static void send_request(struct engine *e, struct client *c, uint64_t now)
{
    while (c->sent < c->url->request_length) {
        ssize_t n =
            send(c->fd, c->url->request + c->sent, c->url->request_length - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            /* Still connecting, or a full socket buffer; then the server may answer early. */
            want(e, c, c->state == CLIENT_CONNECTING ? EPOLLOUT : EPOLLOUT | RECEIVING);
            return;
        }
        if (n < 0) {
            broken(e, c, errno);
            return;
        }
        if (c->state == CLIENT_CONNECTING) {
            c->state = CLIENT_SENDING;
            c->connected = now;
            record_tally(e, c)->opened++;
        }
        c->sent += (uint32_t)n;
    }
    c->state = CLIENT_READING;
    acknowledge_at_once(e, c);
    want(e, c, RECEIVING);
}

static void connect_and_send(struct engine *e, struct client *c)
{
    c->state = CLIENT_CONNECTING;
    c->sent = 0;
    c->endpoint = c->url->endpoint;
    c->fd = dial(&e->urls->endpoints[c->endpoint], &e->sources, 0);
    if (c->fd < 0)
        broken(e, c, errno);
    else
        send_request(e, c, clock_now());
}

void client_begin(struct engine *e, struct client *c, uint64_t intended, uint64_t now)
{
    c->url = &e->urls->items[random_below(&e->random, (uint32_t)e->urls->count)];
    c->intended = intended;
    c->start = now;
    c->connected = 0;
    c->first_byte = 0;
    c->sent = 0;
    reply_begin(&c->reply, e->options->head);
    e->in_flight++;
    deadline_set(&e->timeouts, &c->deadline, now);
    if (e->schedule.open)
        record_lateness(e, c, now);
    if (c->fd >= 0 && c->endpoint != c->url->endpoint)
        disconnect(c);
    if (c->fd < 0) {
        connect_and_send(e, c);
        return;
    }
    record_tally(e, c)->reused++;
    c->state = CLIENT_SENDING;
    send_request(e, c, now);
}

void client_add_free(struct engine *e, struct client *c)
{
    c->next_free = NULL;
    if (e->free_last)
        e->free_last->next_free = c;
    else
        e->free_first = c;
    e->free_last = c;
}

struct client *client_take_free(struct engine *e)
{
    struct client *c = e->free_first;
    if (!c)
        return NULL;
    e->free_first = c->next_free;
    if (!e->free_first)
        e->free_last = NULL;
    return c;
}

void client_next(struct engine *e, struct client *c, uint64_t now)
{
    uint64_t intended;

    c->state = CLIENT_FREE;
    c->free_since = now;
    if (schedule_take(&e->schedule, now, &intended))
        client_begin(e, c, intended, now);
    else
        client_add_free(e, c);
}

/* Takes `n` received bytes, 0 being the end of the stream. Is there more of the reply to come? */
static bool receive(struct engine *e, struct client *c, size_t n, uint32_t events)
{
    uint64_t now = clock_now();
    enum reply_result result = n ? reply_feed(&c->reply, e->scratch, n) : reply_end(&c->reply);

    record_tally_now(e)->total_bytes += n;
    if (!c->first_byte && n > 0)
        c->first_byte = now;
    if (result == REPLY_MORE)
        return true;
    if (result == REPLY_COMPLETE)
        complete(e, c, n == 0 || (events & EPOLLRDHUP), now);
    else if (result != REPLY_SHORT || !send_again(e, c))
        fail(e, c, record_reply_error(result), now);
    return false;
}

static void read_reply(struct engine *e, struct client *c, uint32_t events)
{
    for (int i = 0; i < READ_BUDGET; i++) {
        ssize_t n = recv(c->fd, e->scratch, SCRATCH_SIZE, 0);
        if (n < 0) {
            if (errno != EAGAIN && errno != EINTR)
                broken(e, c, errno);
            return; /* after EINTR epoll reports again */
        }
        if (!receive(e, c, (size_t)n, events))
            return;
        acknowledge_at_once(e, c);
        if (n < SCRATCH_SIZE)
            return;
    }
}

/*
 * No reply is expected: the server closes, as announced or because we were idle, or it sends
 * what nobody asked for; then we close. Is the connection gone?
 */
static bool is_gone(struct engine *e, struct client *c)
{
    ssize_t n = recv(c->fd, e->scratch, SCRATCH_SIZE, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n > 0)
        record_tally_now(e)->unsolicited++;
    else if (c->state == CLIENT_FREE)
        record_tally_now(e)->closed_by_server++;
    disconnect(c);
    return true;
}

void client_on_event(struct engine *e, struct client *c, uint32_t events)
{
    switch (c->state) {
    case CLIENT_CONNECTING:
        send_request(e, c, clock_now());
        break;
    case CLIENT_SENDING:
        if (events & EPOLLIN)
            read_reply(e, c, events);
        else
            send_request(e, c, 0);
        break;
    case CLIENT_READING:
        read_reply(e, c, events);
        break;
    case CLIENT_LINGERING:
        if (is_gone(e, c)) {
            deadline_clear(&c->deadline);
            client_next(e, c, clock_now());
        }
        break;
    case CLIENT_FREE: /* with or without a connection it stays in the list of free clients */
        is_gone(e, c);
        break;
    case CLIENT_RESTING: /* has no descriptor, so this cannot be */
        break;
    }
}

void client_on_timeout(struct engine *e, struct client *c, uint64_t now)
{
    if (c->state == CLIENT_LINGERING) {
        record_tally(e, c)->not_closed++;
        disconnect(c);
        client_next(e, c, now);
        return;
    }
    fail(e, c, c->state == CLIENT_CONNECTING ? FETCH_CONNECT_TIMEOUT : FETCH_TIMEOUT, now);
}
