/* Non-blocking connect; see dial.h. */
#include "dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

/*
 * Without IP_BIND_ADDRESS_NO_PORT bind() would choose a port that is free for *every*
 * destination, so 28 000 connections would be the end; with it connect() chooses, and the same
 * port serves again for another address.
 */
static int bind_source(int fd, struct source_list *sources)
{
    int on = 1;
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = sources->items[sources->next]};

    sources->next = (sources->next + 1) % sources->count;
    if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) < 0)
        return -1;
    return bind(fd, (struct sockaddr *)&from, sizeof from);
}

static int prepare(int fd, struct source_list *sources, int receive_buffer)
{
    if (sources->count > 0 && bind_source(fd, sources) < 0)
        return -1;
    if (receive_buffer <= 0)
        return 0;
    return setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
}

int dial(const struct endpoint *endpoint, struct source_list *sources, int receive_buffer)
{
    int fd = socket(endpoint->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (prepare(fd, sources, receive_buffer) == 0 &&
        (connect(fd, (const struct sockaddr *)&endpoint->address, endpoint->length) == 0 ||
         errno == EINPROGRESS))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int dial_result(int fd)
{
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        return errno;
    return error;
}

enum fetch_error dial_error(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return FETCH_CONNECT_REFUSED;
    case ETIMEDOUT:
        return FETCH_CONNECT_TIMEOUT;
    case ECONNRESET:
    case EPIPE:
        return FETCH_CONNECT_RESET;
    case EADDRNOTAVAIL:
    case EADDRINUSE:
        return FETCH_NO_ADDRESS;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
        return FETCH_NO_RESOURCES;
    default:
        return FETCH_CONNECT_OTHER;
    }
}
