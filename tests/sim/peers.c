/*
 * peers.c: the clients. A good one does all in time: it must have each reply, whole and in order,
 * or a cause why not. Of the others each byte that they get is compared all the same, and none of
 * them may be held for ever. What the reply to a request must be is decided here, in make_ask(),
 * by a table and not by the code of the servers.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stop.h"

#define ASKS   8
#define LOOK   (250 * MS) /* between two looks at what must be so */
#define PROMPT (2 * S)    /* for the next byte of a reply to a good client */
#define QUIET  (12 * S)   /* alone for so long, a server keeps nothing */

/* STEADY is good too, but takes what has come eight times in -t seconds. */
enum nature { GOOD, STEADY, SLOW, STUCK, SILENT, DRIP, RESET, VANISH, FLOOD, NATURES };
static const char *const natures[] = {"good", "steady", "slow",   "stuck", "silent",
                                      "drip", "reset",  "vanish", "flood"};

/* A request, and the reply that it must have. */
struct ask {
    size_t end; /* of its head, in `wire` */
    long step;  /* at which the server could read it */
    int status;
    bool head_only, closes;
    const unsigned char *body; /* of a 200 or 206; else NULL */
    size_t len;
};

enum ending { CLOSES, HALF_CLOSES, IDLES };

struct peer {
    bool used, thinks; /* thinks: until the server has almost given it up */
    int number;
    enum nature nature;
    enum ending ending;
    struct sock *s;
    unsigned char wire[12 * 1024];
    size_t wire_len, given;
    struct ask asks[ASKS];
    int count, answered;
    char head[2048]; /* of the reply that is coming */
    size_t head_len;
    bool in_body, last; /* last: that reply has said `close` */
    int status;
    size_t body_at, body_len;
    long long came_at, act_at, progress_at, speak_at;
    long long asked_at; /* when the request in hand was complete; 0: it is not */
    size_t read_most, send_most;
    long long each;
    int idle; /* so many acts that did nothing */
};

static struct peer peers[PEERS];
static int number;
static long long look_at, come_at, phase_at, quiet_at;
static int fds_at_first;
static struct memory at_first;

const char *peer_name(const struct peer *p)
{
    static char name[40];

    snprintf(name, sizeof name, "client %d (%s)", p->number, natures[p->nature]);
    return name;
}

bool peer_is_good(const struct peer *p)
{
    return p->nature <= STEADY;
}

bool peer_is_late(const struct peer *p)
{
    return p->thinks;
}

int peers_here(void)
{
    int n = 0;

    for (const struct peer *p = peers; p < peers + PEERS; p++)
        n += p->used;
    return n;
}

/* ---- what it asks, and what it must be told */

static const struct target {
    const char *path;
    int status, file; /* -1: none */
} targets[] = {
    {"/0.txt", 200, 0},   {"/1.txt", 200, 1},   {"/2.txt", 200, 2},   {"/3.txt", 200, 3},
    {"/4.txt", 200, 4},   {"/5.txt", 200, 5},   {"/6.txt", 200, 6},   {"/7.txt", 200, 7},
    {"/8.txt", 200, 8},   {"/9.txt", 200, 9},   {"/10.txt", 200, 10}, {"/11.txt", 200, 11},
    {"/12.txt", 200, 12}, {"/dir/", 200, 3},    {"/dir", 301, -1},    {"/missing", 404, -1},
    {"/secret", 403, -1}, {"/a/../b", 403, -1},
};
#define TARGETS ((int)(sizeof targets / sizeof *targets))
#define SMALL   10 /* so many come first */

static const struct target *choose(enum nature nature)
{
    if (nature == SLOW || nature == STUCK)
        return &targets[10 + pick(3)];
    if (one_in(4))
        return &targets[13 + pick((unsigned)TARGETS - 13)];
    return one_in(12) ? &targets[pick(13)] : &targets[pick(SMALL)];
}

static void say(struct peer *p, const char *text)
{
    size_t len = strlen(text);

    if (p->wire_len + len <= sizeof p->wire) {
        memcpy(p->wire + p->wire_len, text, len);
        p->wire_len += len;
    }
}

static void ask_range(struct peer *p, struct ask *a)
{
    char field[80];
    size_t first = pick((unsigned)a->len + 3), last = first + pick((unsigned)a->len);

    snprintf(field, sizeof field, "Range: bytes=%zu-%zu\r\n", first, last);
    say(p, field);
    if (first >= a->len) {
        a->status = 416;
        a->body = NULL;
        return;
    }
    a->status = 206;
    a->body += first;
    a->len = (last < a->len ? last + 1 : a->len) - first;
}

/* A body that the server does not want: the reply is the last, and must arrive nevertheless. */
static void ask_with_body(struct peer *p, struct ask *a)
{
    say(p, p->nature == FLOOD ? "Content-Length: 100000000\r\n" : "Content-Length: 100\r\n");
    a->closes = true;
}

static void make_ask(struct peer *p, struct ask *a)
{
    const struct target *t = choose(p->nature);
    const char *method = one_in(8) ? "HEAD" : one_in(12) ? "POST" : one_in(30) ? "BREW" : "GET";
    bool old = one_in(10), close_too = one_in(10), body = p->nature == FLOOD || one_in(15);

    *a = (struct ask){.status = t->status, .head_only = strcmp(method, "HEAD") == 0};
    if (one_in(40)) {
        say(p, one_in(2) ? "GET\r\n\r\n" : "GET  /0.txt HTTP/1.1\r\n\r\n");
        *a = (struct ask){.status = 400, .closes = true, .end = p->wire_len};
        return;
    }
    say(p, method);
    say(p, " ");
    say(p, t->path);
    say(p, old ? " HTTP/1.0\r\n" : " HTTP/1.1\r\nHost: a\r\n");
    if (strcmp(method, "POST") == 0)
        a->status = 405;
    if (strcmp(method, "BREW") == 0)
        a->status = 501;
    if (a->status == 200) {
        a->body = file_bytes(t->file);
        a->len = file_sizes[t->file];
        if (!a->head_only && one_in(10))
            ask_range(p, a);
    }
    a->closes = old;
    if (close_too) {
        a->closes = true;
        say(p, "Connection: close\r\n");
    } else if (old && one_in(2)) {
        a->closes = false;
        say(p, "Connection: keep-alive\r\n");
    }
    if (body)
        ask_with_body(p, a);
    say(p, "\r\n");
    a->end = p->wire_len;
    if (body)
        p->wire_len += 100; /* zeros */
}

/* ---- the reply */

/* A cause why a reply is missing or cut. */
static bool is_excused(const struct peer *p)
{
    return p->s->excuse != NULL;
}

static bool may_be_refused(const struct peer *p)
{
    return w.shortage >= p->asks[p->answered].step || is_excused(p);
}

static void judge_head(struct peer *p, const struct ask *a, size_t length, bool has_length)
{
    bool refused = p->status == 503 && may_be_refused(p);

    if (p->status != a->status && !refused)
        fault("%s: reply %d has status %d, not %d", peer_name(p), p->answered + 1, p->status,
              a->status);
    if (a->closes && !p->last)
        fault("%s: reply %d does not say close", peer_name(p), p->answered + 1);
    if (p->last && !a->closes && !stopping && !refused)
        fault("%s: reply %d says close", peer_name(p), p->answered + 1);
    if (!has_length)
        fault("%s: reply %d has no length", peer_name(p), p->answered + 1);
    if (a->body != NULL && !refused && length != a->len)
        fault("%s: reply %d promises %zu bytes, not %zu", peer_name(p), p->answered + 1, length,
              a->len);
}

static void reply_is_over(struct peer *p)
{
    TRACE("%s: reply %d, status %d, is whole", peer_name(p), p->answered + 1, p->status);
    p->answered++;
    p->in_body = false;
    p->head_len = 0;
    p->speak_at = w.now + w.timeout_s * S - 45 * MS + pick(50 * MS);
    p->progress_at = w.now;
    p->asked_at = p->answered < p->count && p->given >= p->asks[p->answered].end ? w.now : 0;
}

static void take_head(struct peer *p)
{
    const struct ask *a = &p->asks[p->answered];
    const char *length = strstr(p->head, "\r\nContent-Length: ");

    if (p->answered >= p->count)
        fault("%s: a reply to nothing", peer_name(p));
    if (strncmp(p->head, "HTTP/1.1 ", 9) != 0)
        fault("%s: reply %d begins with %.20s", peer_name(p), p->answered + 1, p->head);
    p->status = atoi(p->head + 9);
    p->last = strstr(p->head, "\r\nConnection: close\r\n") != NULL;
    p->body_len = length != NULL ? strtoul(length + 18, NULL, 10) : 0;
    judge_head(p, a, p->body_len, length != NULL);
    p->body_at = 0;
    p->in_body = true;
    if (a->head_only)
        p->body_len = 0;
    if (p->body_len == 0)
        reply_is_over(p);
}

static void take_body(struct peer *p, const unsigned char *bytes, size_t len)
{
    const struct ask *a = &p->asks[p->answered];
    char text[4];

    if (a->body != NULL && p->status == a->status) {
        if (memcmp(bytes, a->body + p->body_at, len) != 0)
            fault("%s: reply %d has wrong bytes from %zu on", peer_name(p), p->answered + 1,
                  p->body_at);
    } else if (p->body_at == 0 && len >= 3) {
        snprintf(text, sizeof text, "%d", p->status);
        if (memcmp(bytes, text, 3) != 0)
            fault("%s: the text of reply %d is not about %s", peer_name(p), p->answered + 1, text);
    }
    p->body_at += len;
    if (p->body_at == p->body_len)
        reply_is_over(p);
}

static void take(struct peer *p, const unsigned char *bytes, size_t len)
{
    p->progress_at = w.now;
    while (len > 0) {
        if (p->last && !p->in_body && p->status == 503 && p->asks[p->answered - 1].head_only)
            return; /* was refused before it had asked: nobody knew that it is a HEAD */
        if (p->last && !p->in_body)
            fault("%s: bytes after the last reply", peer_name(p));
        if (p->in_body) {
            size_t n = p->body_len - p->body_at < len ? p->body_len - p->body_at : len;
            take_body(p, bytes, n);
            bytes += n;
            len -= n;
            continue;
        }
        if (p->head_len + 1 == sizeof p->head)
            fault("%s: a head without end", peer_name(p));
        p->head[p->head_len++] = (char)*bytes++;
        p->head[p->head_len] = '\0';
        len--;
        if (p->head_len >= 4 && memcmp(p->head + p->head_len - 4, "\r\n\r\n", 4) == 0)
            take_head(p);
    }
}

static void judge_end(const struct peer *p)
{
    bool cut = p->in_body || p->head_len > 0,
         owed = p->answered < p->count && !p->last && !p->s->no_more;

    TRACE("%s: sees the end%s", peer_name(p), cut || owed ? ", early" : "");
    if (!peer_is_good(p) || is_excused(p))
        return;
    if (cut)
        fault("%s: reply %d is cut, and there is no cause", peer_name(p), p->answered + 1);
    if (owed)
        fault("%s: the end, and no reply to request %d", peer_name(p), p->answered + 1);
}

/* ---- what it does */

static void leaves(struct peer *p)
{
    p->used = false;
    p->s = NULL;
}

static void gives(struct peer *p)
{
    static const unsigned char zeros[4096];
    size_t until = p->thinks && p->answered < p->count ? p->asks[p->answered].end : p->wire_len;
    size_t left = until - p->given, n = left < p->send_most ? left : p->send_most;

    if (p->thinks && p->answered > 0 && w.now < p->speak_at) {
        p->act_at = p->speak_at;
        return;
    }
    if (p->nature == SILENT && p->given + n > p->asks[0].end / 2)
        return;
    if (left == 0 && p->nature == FLOOD)
        client_sends(p->s, zeros, sizeof zeros);
    if (left == 0 || (p->last && peer_is_good(p)))
        return;
    size_t before = p->given;
    p->given += client_sends(p->s, p->wire + p->given, n);
    for (int i = 0; i < p->count; i++)
        if (p->asks[i].end > before && p->asks[i].end <= p->given)
            p->asks[i].step = w.steps;
    if (p->asked_at == 0 && p->answered < p->count && p->given >= p->asks[p->answered].end)
        p->asked_at = p->progress_at = w.now;
    if (p->given == p->wire_len && p->ending == HALF_CLOSES)
        client_fin(p->s);
}

void peer_hears(struct peer *p)
{
    long long at = w.now + 1 + pick((unsigned)p->each);

    p->idle = 0;
    p->act_at = at < p->act_at ? at : p->act_at;
    due(p->act_at);
}

static void acts(struct peer *p)
{
    struct sock *s = p->s;
    long long before = s->taken + (long long)p->given;
    bool fate = one_in(12) || w.now - p->came_at > 20 * S;

    p->act_at = w.now + 1 + pick((unsigned)p->each) * (1 + p->idle);
    if (p->nature == RESET && fate) {
        TRACE("%s: resets", peer_name(p));
        client_reset(s);
        leaves(p);
        return;
    }
    if (p->nature == VANISH && fate) {
        TRACE("%s: vanishes", peer_name(p));
        s->frozen = true;
        s->peer = NULL;
        leaves(p);
        return;
    }
    if (s->closed && !peer_is_good(p)) /* the server is rid of it: it may go */
        client_reads(s, OUT_MAX, take);
    else if (p->read_most > 0)
        client_reads(s, p->read_most, take);
    if (client_sees_end(s)) {
        judge_end(p);
        client_closes(s);
        leaves(p);
        return;
    }
    gives(p);
    p->idle = s->taken + (long long)p->given != before ? 0 : p->idle < 30 ? p->idle + 1 : 30;
    bool done = p->answered == p->count && !p->last && p->ending == CLOSES && p->nature != FLOOD;
    if (done || (p->nature == FLOOD && w.now - p->came_at > 20 * S)) {
        TRACE("%s: closes", peer_name(p));
        client_closes(s);
        leaves(p);
    }
}

/* ---- it comes */

static enum nature draw_nature(void)
{
    if (w.phase == LAST)
        return GOOD;
    if (w.siege && !one_in(6))
        return one_in(2) ? SLOW : STUCK;
    return one_in(2) ? GOOD : (enum nature)pick(NATURES);
}

static void set_pace(struct peer *p)
{
    struct sock *s = p->s;

    p->send_most = one_in(3) ? 1 + pick(200) : sizeof p->wire;
    p->read_most = OUT_MAX;
    p->each = 2 * MS + pick(30 * MS);
    s->room = 16384 + pick(one_in(4) ? 100000 : 20000); /* both together below OUT_MAX */
    s->window = 16384 + pick(one_in(4) ? 60000 : 20000);
    if (p->nature == STEADY) {
        p->each = w.timeout_s * S / 8;
        s->room += 32768;
        s->window += 32768;
        p->send_most = sizeof p->wire;
    }
    if (p->nature == SLOW) {
        p->read_most = 500 + pick(4000);
        p->each = 600 * MS;
    }
    if (p->nature == STUCK) {
        p->read_most = one_in(2) ? 0 : 10;
        p->each = S;
    }
    if (p->nature == DRIP) {
        p->send_most = 1;
        p->each = 200 * MS;
    }
    if (p->nature == GOOD && (p->send_most < 100 || p->thinks))
        p->send_most = p->thinks ? sizeof p->wire : 100;
}

static bool comes(void)
{
    struct peer *p = peers;

    while (p < peers + PEERS && p->used)
        p++;
    if (p == peers + PEERS)
        return false;
    struct sock *s = connect_to_server(p);
    if (s == NULL)
        return false;
    *p = (struct peer){.used = true, .number = ++number, .s = s, .came_at = w.now, .act_at = w.now};
    p->nature = draw_nature();
    p->ending = (enum ending)pick(3);
    p->thinks = p->nature == GOOD && one_in(4);
    int most = p->thinks || one_in(3) ? ASKS : 1 + (int)pick(2);
    do
        make_ask(p, &p->asks[p->count++]);
    while (p->count < most && !p->asks[p->count - 1].closes && p->wire_len < 8000);
    set_pace(p);
    TRACE("%s: comes, with %d requests, the first %.*s", peer_name(p), p->count,
          (int)strcspn((char *)p->wire, "\r"), (char *)p->wire);
    return true;
}

void peer_was_accepted(struct peer *p)
{
    p->progress_at = w.now;
}

/* ---- what must be so */

static void look_at_socket(const struct sock *s)
{
    bool waits = job_is_for != NULL && job_is_for(s->fd);
    long long most = (waits ? 35LL : 3LL) * w.timeout_s * S + 10 * S;

    if (w.now - s->moved_at > most)
        fault("descriptor %d is held for ever: nothing has moved for %lld s", s->fd,
              (w.now - s->moved_at) / S);
}

static void look_at_peer(struct peer *p)
{
    struct sock *s = p->s;
    bool alone = strcmp(w.server, "05b-nonblocking") == 0;
    long long prompt = PROMPT + 2 * p->each;

    if (is_queued(s)) {
        long long waited = w.now - p->came_at;
        if (alone || stopping)
            return;
        if (waited > 15 * S && who_could_leave() != NULL)
            fault("%s: shut out for %lld s, while another client does not read", peer_name(p),
                  waited / S);
        if (waited > 5 * S && w.now - w.lacked_at > 5 * S)
            fault("%s: not accepted for %lld s, and there is room", peer_name(p), waited / S);
        return;
    }
    if (job_is_for != NULL && job_is_for(s->fd))
        p->progress_at = w.now;
    if (p->asked_at > 0 && !s->closed && s->acked == s->taken && !is_excused(p) && !p->last &&
        w.now - p->progress_at > prompt)
        fault("%s: waits for %lld ms, and the server does nothing", peer_name(p),
              (w.now - p->progress_at) / MS);
}

static void judge_quiet(void)
{
    int more = strcmp(w.server, "15-slashdot") == 0 ? 2 : 1; /* what is kept for the next reply */

    if (open_fds() != fds_at_first)
        fault("%d descriptors were open when it began, and now %d", fds_at_first, open_fds());
    if (memory.blocks > at_first.blocks + more)
        fault("%ld blocks of memory more than when it began", memory.blocks - at_first.blocks);
    if (memory.maps > at_first.maps + 16)
        fault("%ld maps of memory more than when it began", memory.maps - at_first.maps);
}

static void enter_phase(enum phase phase)
{
    static const char *const names[] = {"chaos", "calm", "last", "stopping"};

    w.phase = phase;
    phase_at = w.now;
    quiet_at = 0;
    TRACE("---- %s", names[phase]);
}

static void when_alone(void)
{
    bool alone = peers_here() == 0 && sockets_held() == 0 && (!jobs_left || jobs_left() == 0);

    quiet_at = !alone ? 0 : quiet_at > 0 ? quiet_at : w.now;
    if (quiet_at > 0 && w.now - quiet_at > QUIET) {
        judge_quiet();
        enter_phase(LAST);
    }
}

static void end_phase(void)
{
    long long since = w.now - phase_at;

    switch (w.phase) {
    case CHAOS:
        if (w.steps >= w.chaos_for || since > 900 * S)
            enter_phase(CALM);
        break;
    case CALM:
        if (since > 300LL * w.timeout_s * S)
            fault("clients are still here %lld s after the last came", since / S);
        when_alone();
        break;
    case LAST:
        if (since > 300 * MS && one_in(3))
            enter_phase(STOPPING);
        break;
    case STOPPING:
        if (since > 20 * S)
            fault("it does not stop");
        break;
    }
}

static void look(void)
{
    look_at = w.now + (w.phase == CALM ? S : LOOK);
    for (const struct sock *s = socks; s < socks + SOCKETS; s++)
        if (s->used && s->accepted && !s->closed)
            look_at_socket(s);
    for (struct peer *p = peers; p < peers + PEERS; p++)
        if (p->used && peer_is_good(p))
            look_at_peer(p);
    end_phase();
}

/* ---- all of them */

void peers_begin(void)
{
    fds_at_first = open_fds();
    at_first = memory;
    look_at = come_at = phase_at = w.now;
    due(w.now);
}

static void some_come(void)
{
    int n = one_in(12) ? 24 : 1; /* more than ACCEPTS, now and then */

    come_at = w.now + 1 + pick((w.siege ? 60 : 200) * MS);
    while (n-- > 0 && (w.phase == CHAOS || w.phase == LAST) && peers_here() < w.peers_most)
        if (!comes())
            return;
}

void peers_act(void)
{
    if (w.now >= look_at)
        look();
    if (w.now >= come_at)
        some_come();
    due(look_at);
    due(come_at);
    for (struct peer *p = peers; p < peers + PEERS; p++) {
        if (p->used && w.now >= p->act_at)
            acts(p);
        if (p->used)
            due(p->act_at);
    }
}
