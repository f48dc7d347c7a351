#include "11-sendfile/send_path.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "die.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct body *const bodies[] = {&body_read, &body_mmap, &body_sendfile, &body_splice};
static const struct join *const joins[] = {&join_two, &join_nodelay, &join_writev, &join_cork,
                                           &join_more};

static const struct body *chosen_body;
static const struct join *chosen_join;

static size_t rest(const struct exchange *x, long budget)
{
    off_t left = x->reply.end - exchange_offset(x);

    return left < budget ? (size_t)left : (size_t)budget;
}

static enum sent send_by_path(int fd, struct exchange *x, long *budget)
{
    struct reply *r = &x->reply;

    while (exchange_head_left(x) > 0 || (r->fd >= 0 && exchange_offset(x) < r->end)) {
        if (*budget <= 0)
            return SENT_BUDGET;
        ssize_t n = exchange_head_left(x) > 0 ? chosen_join->send_head(fd, x, chosen_body)
                                              : chosen_body->send(fd, x, rest(x, *budget));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? SENT_BLOCKED : SENT_FAILED;
        if (n == 0) /* shorter than promised: only the end of the connection can say so */
            return SENT_FAILED;
        x->sent += n;
        *budget -= n;
    }
    if (r->fd >= 0 && chosen_join->end != NULL)
        chosen_join->end(fd);
    return SENT_ALL;
}

static void end_path(struct exchange *x)
{
    if (chosen_body->end != NULL)
        chosen_body->end(x);
    if (x->reply.fd >= 0)
        close(x->reply.fd);
}

static struct conn_ops ops = {.send = send_by_path, .end = end_path};

void send_path_choose(const char *name)
{
    const char *way = name != NULL ? name : "more+sendfile";
    const char *plus = strchr(way, '+');

    for (size_t i = 0; plus != NULL && i < COUNT(joins); i++)
        if (strlen(joins[i]->name) == (size_t)(plus - way) &&
            memcmp(joins[i]->name, way, (size_t)(plus - way)) == 0)
            chosen_join = joins[i];
    for (size_t i = 0; plus != NULL && i < COUNT(bodies); i++)
        if (strcmp(bodies[i]->name, plus + 1) == 0)
            chosen_body = bodies[i];
    if (chosen_join == NULL || chosen_body == NULL)
        die(EXIT_USAGE, "-s %s: there is no such way to send; -h lists them", way);
    if (chosen_join->send_head == NULL || chosen_body->send == NULL)
        die(EXIT_UNSUPPORTED, "-s %s: this system has no %s", way,
            chosen_join->send_head == NULL ? chosen_join->name : chosen_body->name);
    if (chosen_join->needs_memory && chosen_body->show == NULL)
        die(EXIT_USAGE, "-s %s: %s needs the body in memory: read or mmap", way, chosen_join->name);
    ops.turn_bytes = chosen_body->turn;
    if (chosen_body->prepare != NULL)
        chosen_body->prepare();
}

void send_path_begin(struct conn *c)
{
    c->ops = &ops;
    if (chosen_join->begin != NULL)
        chosen_join->begin(c->fd);
}
