#include "14-owfat/watching.h"

#include <errno.h>
#include <io.h>

/*
 * The library keeps in mind what it takes to be ready, and asks the kernel nothing about it. It is
 * made to forget that before it is told what is wanted: else the descriptor may only be put into a
 * queue, which is looked at after the next wait. Whether the kernel agreed only errno tells.
 */
bool want_read(int fd)
{
    errno = 0;
    io_eagain_read(fd);
    io_wantread(fd);
    return errno == 0;
}

bool want_write(int fd)
{
    errno = 0;
    io_eagain_write(fd);
    io_wantwrite(fd);
    return errno == 0;
}

/* After each batch of more than one part the library is no longer sure that there is room, and
 * would have the kernel look, in two calls a request. To say that the socket is new ends that. */
static void assume_room(int fd)
{
    io_fd_flags(fd, IO_FD_NONBLOCK | IO_FD_CANWRITE);
}

bool watch(int fd, enum want want, enum want before)
{
    if (want == WANT_READ)
        assume_room(fd);
    if (want == before)
        return true;
    if (want == WANT_READ) {
        bool heard = want_read(fd);
        io_dontwantwrite(fd); /* last: it asks for what is wanted then, and no more */
        return heard;
    }
    io_dontwantread(fd);
    return want_write(fd);
}
