#include "11-sendfile/cork.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

int cork(int fd, bool on)
{
    int value = on;

    return setsockopt(fd, IPPROTO_TCP, TCP_CORK, &value, sizeof value);
}
