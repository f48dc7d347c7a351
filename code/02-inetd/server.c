/*
 * 02-inetd: the server without a server. inetd, tcpserver or xinetd listens, accepts, forks, and
 * runs this program with the connection as its standard input and output, once for each connection.
 *
 * Run:  tcpserver 127.0.0.1 8080 build/bin/02-inetd /usr/share/doc
 * Poke: build/bin/00-client http://127.0.0.1:8080/
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "01-iterative/serve_client.h"
#include "die.h"
#include "options.h"
#include "stop.h"

int main(int argc, char **argv)
{
    struct options o;
    struct stat st;

    options_parse(&o, argc, argv,
                  "a web server for one connection, to be run by inetd or tcpserver");
    if (fstat(STDIN_FILENO, &st) < 0 || !S_ISSOCK(st.st_mode))
        die(EXIT_FAILURE, "standard input is not a socket: run it from inetd or tcpserver");
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        die_errno("signal SIGPIPE");
    stop_on_signals();
    stop_wakes(-1, STDIN_FILENO);

    const struct serve how = {.options = &o, .keep_alive = true, .watchdog = alarm};
    serve_client(STDIN_FILENO, &how);
    return EXIT_SUCCESS;
}
