#include <unistd.h>

#include "net.h"
#include "options.h"

int main(int argc, char **argv)
{
    struct options o;

    options_parse(&o, argc, argv, "a flood on stderr");
    tcp_listen(&o);
    for (;;)
        (void)!write(STDERR_FILENO, &o, sizeof o);
}
