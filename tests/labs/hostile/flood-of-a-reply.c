#include <string.h>
#include <sys/socket.h>

#include "net.h"
#include "options.h"

int main(int argc, char **argv)
{
    static char many[1 << 20];
    struct options o;

    options_parse(&o, argc, argv, "a reply without an end");
    int listen_fd = tcp_listen(&o);
    memset(many, 'x', sizeof many);
    for (;;) {
        int fd = accept(listen_fd, NULL, NULL);
        while (send(fd, many, sizeof many, 0) > 0)
            continue;
    }
}
