#include <signal.h>
#include <unistd.h>

#include "net.h"
#include "options.h"

int main(int argc, char **argv)
{
    struct options o;

    options_parse(&o, argc, argv, "children in sessions of their own, whose parents have ended");
    signal(SIGTERM, SIG_IGN);
    for (int i = 0; i < 20; i++) {
        if (fork() == 0) {
            setsid();
            if (fork() > 0)
                _exit(0);
            for (;;)
                pause();
        }
    }
    tcp_listen(&o);
    return 0;
}
