/*
 * 02-inetd: a server that does not listen. inetd, tcpserver or xinetd listens, accepts, forks, and
 * runs this program with the connection as its standard input and output, once for each connection.
 *
 * Run:  tcpserver 127.0.0.1 8080 build/bin/02-inetd /usr/share/doc
 * Poke: build/bin/00-client http://127.0.0.1:8080/
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "01-iterative/serve_client.h"
#include "die.h"
#include "options.h"
#include "privileges.h"
#include "stop.h"
#include "unsent.h"

/* inetd and xinetd make the connection stderr, too: a message would become part of a reply. */
static void keep_stderr_apart(const struct stat *connection)
{
    struct stat st;

    if (fstat(STDERR_FILENO, &st) < 0 || st.st_dev != connection->st_dev ||
        st.st_ino != connection->st_ino)
        return;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDERR_FILENO) < 0)
        exit(EXIT_FAILURE);
    close(null);
}

/* O_NONBLOCK belongs to the open file: the program that accepted the connection may have set it.
 * Then recv() would fail before the request has come. */
static void let_calls_wait(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
        die_errno("fcntl");
}

int main(int argc, char **argv)
{
    struct options o;
    struct stat st;

    bool is_connection = fstat(STDIN_FILENO, &st) == 0 && S_ISSOCK(st.st_mode);
    if (is_connection)
        keep_stderr_apart(&st);
    options_parse(&o, argc, argv,
                  "a web server for one connection, to be run by inetd or tcpserver");
    if (!is_connection)
        die(EXIT_FAILURE, "standard input is not a socket: run it from inetd or tcpserver");
    let_calls_wait(STDIN_FILENO);
    privileges_drop(); /* and no privileges_warn(): inetd has chosen the user */
    stop_on_signals();
    stop_wakes(-1, STDIN_FILENO);
    /* Both as tcp_listen() for the other servers. They fail where the socket is not TCP's, which
     * has no such delay and no such limit. */
    unsent_limited(STDIN_FILENO);
    (void)!setsockopt(STDIN_FILENO, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));

    const struct serve how = {.options = &o, .keep_alive = true, .watchdog = alarm};
    serve_client(STDIN_FILENO, &how);
    return EXIT_SUCCESS;
}
