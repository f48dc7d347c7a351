#include "linger.h"

#include <errno.h>
#include <sys/socket.h>

#include "acknowledged.h"
#include "stop.h"

#define CREDIT_MS 10
#define UNREAD_CREDIT                                                                              \
    100 /* after all has arrived, if the client may still be sending: a second, or 50 MiB */
#define TURN_READS 64

enum want linger_begin(struct linger_state *l, int fd, bool unread, int timeout_s)
{
    *l =
        (struct linger_state){.unread = unread, .credit = (unsigned short)LINGER_CREDIT(timeout_s)};
    return shutdown(fd, SHUT_WR) < 0 ? WANT_CLOSE : WANT_AGAIN;
}

static enum want look_whether_arrived(struct linger_state *l, int fd)
{
    if (!all_acknowledged(fd))
        return WANT_READ;
    if (!l->unread || stopping)
        return WANT_CLOSE;
    if (l->credit > UNREAD_CREDIT)
        l->credit = UNREAD_CREDIT;
    return WANT_READ;
}

enum want linger_read(struct linger_state *l, int fd)
{
    static char unread[8192];

    for (int i = 0; i < TURN_READS; i++) {
        ssize_t n = recv(fd, unread, sizeof unread, 0);
        if (n < 0 && errno == EAGAIN)
            return look_whether_arrived(l, fd);
        if (n == 0 || (n < 0 && errno != EINTR))
            return WANT_CLOSE;
    }
    return l->credit-- > 0 ? WANT_AGAIN : WANT_CLOSE;
}

enum want linger_look(struct linger_state *l, int fd, int ms)
{
    int cost = ms / CREDIT_MS;

    if (l->credit < cost)
        return WANT_CLOSE;
    l->credit = (unsigned short)(l->credit - cost);
    return linger_read(l, fd);
}
