#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "die.h"
#include "sent_ways.h"

static ssize_t by_sendfile(int socket_fd, int file_fd, size_t size)
{
    off_t offset = 0;
    return sendfile(socket_fd, file_fd, &offset, size);
}

/* Of what fits into a pipe, which in-flight sees to. */
static ssize_t by_splice(int socket_fd, int file_fd, size_t size)
{
    int ends[2];
    loff_t offset = 0;
    if (pipe(ends) == -1)
        die_errno("pipe");
    ssize_t n = splice(file_fd, &offset, ends[1], NULL, size, 0);
    if (n > 0)
        n = splice(ends[0], NULL, socket_fd, NULL, (size_t)n, 0);
    close(ends[0]);
    close(ends[1]);
    return n;
}

send_fn *sent_way(const char *name)
{
    return strcmp(name, "sendfile") == 0 ? by_sendfile
           : strcmp(name, "splice") == 0 ? by_splice
                                         : NULL;
}
