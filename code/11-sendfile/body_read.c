/*
 * The oldest way: read into a buffer, write from it. The processor copies every byte twice, from
 * the page cache and to the socket.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "11-sendfile/send_path.h"

/* One for all connections: what the socket does not take is read from the file again. */
static char buffer[65536];

static ssize_t read_show(struct exchange *x, size_t most, const char **bytes)
{
    *bytes = buffer;
    return pread(x->reply.fd, buffer, most < sizeof buffer ? most : sizeof buffer,
                 exchange_offset(x));
}

static ssize_t read_send_body(int fd, struct exchange *x, size_t most)
{
    const char *bytes;
    ssize_t n = read_show(x, most, &bytes);

    return n <= 0 ? n : send(fd, bytes, (size_t)n, 0);
}

const struct body body_read = {.name = "read", .send = read_send_body, .show = read_show};
