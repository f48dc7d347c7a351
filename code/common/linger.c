#include "linger.h"

#include <errno.h>
#include <sys/socket.h>

#include "acknowledged.h"
#include "stop.h"

#define CREDIT_MS     10
#define UNREAD_CREDIT 100 /* after all has arrived, if the client may still send: 1 s, or 50 MiB */

bool linger_pay(struct linger_state *l, int ms)
{
    bool has_credit = l->credit >= ms / CREDIT_MS;

    l->credit = (unsigned short)(has_credit ? l->credit - ms / CREDIT_MS : 0);
    return has_credit;
}

bool linger_is_over(struct linger_state *l, bool arrived)
{
    if (arrived && l->credit > UNREAD_CREDIT)
        l->credit = UNREAD_CREDIT;
    return arrived && (!l->unread || stopping);
}

enum want linger_begin(struct linger_state *l, int fd, bool unread, int timeout_s)
{
    *l =
        (struct linger_state){.unread = unread, .credit = (unsigned short)LINGER_CREDIT(timeout_s)};
    return shutdown(fd, SHUT_WR) < 0 ? WANT_CLOSE : WANT_AGAIN;
}

enum want linger_read(struct linger_state *l, int fd)
{
    static char unread[8192];

    for (int i = 0; i < LINGER_READS; i++) {
        ssize_t n = recv(fd, unread, sizeof unread, 0);
        if (n < 0 && errno == EAGAIN)
            return linger_is_over(l, all_acknowledged(fd)) ? WANT_CLOSE : WANT_READ;
        if (n == 0 || (n < 0 && errno != EINTR))
            return WANT_CLOSE;
    }
    linger_is_over(l, all_acknowledged(fd)); /* cuts the credit, if all has arrived */
    return linger_pay(l, CREDIT_MS) ? WANT_AGAIN : WANT_CLOSE;
}

enum want linger_look(struct linger_state *l, int fd, int ms)
{
    return linger_pay(l, ms) ? linger_read(l, fd) : WANT_CLOSE;
}
