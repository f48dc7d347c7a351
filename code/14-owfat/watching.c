#include "14-owfat/watching.h"

#include <errno.h>
#include <io.h>

/*
 * The library remembers which descriptors it takes to be ready. io_wantread() of such a one does
 * not call epoll_ctl(), but puts it into a queue that is looked at after the next wait.
 * io_eagain_read() makes it forget. io_wantread() returns nothing: only errno tells that
 * epoll_ctl() failed.
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

/* After a batch of more than one part the library would ask epoll whether there is room: two calls
 * more for each request. These flags say that the socket is new, and then it does not ask. */
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
        io_dontwantwrite(fd); /* last: it calls epoll_ctl() with all that is wanted by then */
        return heard;
    }
    io_dontwantread(fd);
    return want_write(fd);
}
