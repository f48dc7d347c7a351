#include "12-aio/appendix/appendix.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "11-sendfile/send_path.h"

static enum fetched fetch_nothing(struct exchange *x)
{
    (void)x;
    return FETCHED;
}

/* -d writev: the file is mapped, and send() waits for the pages that are not in memory. */
static ssize_t mapped_send(int fd, struct exchange *x, size_t most)
{
    return body_mmap.send(fd, x, most);
}

static void mapped_end(struct exchange *x)
{
    body_mmap.end(x);
}

/* -d sendfile: as in 11-sendfile. sendfile() waits for the disk, O_NONBLOCK or not. */
static ssize_t sendfile_in_loop(int fd, struct exchange *x, size_t most)
{
    off_t offset = exchange_offset(x);

    return sendfile(fd, x->reply.fd, &offset, most);
}

static void hold_nothing(struct exchange *x)
{
    (void)x;
}

bool appendix_choose(const char *name, int readers, struct body_source *from)
{
    if (strcmp(name, "writev") == 0) {
        *from = (struct body_source){fetch_nothing, mapped_send, mapped_end, NULL};
    } else if (strcmp(name, "sendfile") == 0) {
        *from = (struct body_source){fetch_nothing, sendfile_in_loop, hold_nothing, NULL};
    } else if (strcmp(name, "threads-sendfile") == 0) {
        *from = source_threads_sendfile;
        threads_sendfile_start(readers);
    } else if (strcmp(name, "readahead") == 0) {
        *from = source_readahead;
        readahead_start(readers);
    } else {
        return false;
    }
    return true;
}

static bool (*find_with_atime)(struct exchange *x, const struct request *req, int docroot_fd);

static bool find_without_atime(struct exchange *x, const struct request *req, int docroot_fd)
{
    bool found = find_with_atime(x, req, docroot_fd);
    int flags = found && x->reply.fd >= 0 ? fcntl(x->reply.fd, F_GETFL) : -1;

    if (flags >= 0)
        fcntl(x->reply.fd, F_SETFL, flags | O_NOATIME); /* EPERM: another user's file */
    return found;
}

void appendix_no_atime(struct conn_ops *ops)
{
    find_with_atime = ops->find;
    ops->find = find_without_atime;
}
