/*
 * ring_watch.c: what strace does for system calls, for the operations of an io_uring, which no tracer
 * sees. Preloaded (LD_PRELOAD), it stands between a server and liburing.
 *
 *   RING_WATCH=FILE          a line for each operation handed to the kernel, for each that is done, and
 *                            for each io_uring_enter
 *   RING_INJECT=OP:ERRNO:FIRST[..LAST][+STEP]
 *                            those operations of this kind fail with this error (a number), and are never
 *                            begun: the kernel gets a NOP that ends with it, Linux 6.10
 *   RING_LACKS=OP            the kernel does not have this operation, says the probe
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOP_INJECT_RESULT 1u /* IORING_NOP_INJECT_RESULT, which older headers do not have */

int io_uring_submit(struct io_uring *ring);
int io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe_ptr,
                                     unsigned wait_nr, struct __kernel_timespec *ts,
                                     sigset_t *sigmask);
struct io_uring_probe *io_uring_get_probe_ring(struct io_uring *ring);

static const struct {
    int opcode;
    const char *name;
} names[] = {
    {IORING_OP_ACCEPT, "ACCEPT"},       {IORING_OP_ASYNC_CANCEL, "ASYNC_CANCEL"},
    {IORING_OP_CLOSE, "CLOSE"},         {IORING_OP_OPENAT2, "OPENAT2"},
    {IORING_OP_POLL_ADD, "POLL"},       {IORING_OP_READ, "READ"},
    {IORING_OP_RECV, "RECV"},           {IORING_OP_SEND, "SEND"},
    {IORING_OP_STATX, "STATX"},         {IORING_OP_SHUTDOWN, "SHUTDOWN"},
    {IORING_OP_URING_CMD, "URING_CMD"},
};

static const char *name_of(int opcode)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].opcode == opcode)
            return names[i].name;
    return "OTHER";
}

static int fd = -1;

/* Before main(), so that the server has as many descriptors from its first moment on. */
__attribute__((constructor)) static void open_file(void)
{
    const char *path = getenv("RING_WATCH");

    if (path != NULL)
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static void write_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void write_line(const char *format, ...)
{
    char line[200];
    va_list args;

    if (fd < 0)
        return;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (write(fd, line, (size_t)len) != len)
        abort();
}

/* Whether this is one of those that shall fail; then with *error. */
static int chosen(const char *name, int *error)
{
    static int count;
    int first = 0, last = 0, step = 0;
    char op[32], when[32];
    const char *inject = getenv("RING_INJECT");

    if (inject == NULL || sscanf(inject, "%31[A-Z0-9_]:%d:%31s", op, error, when) != 3)
        return 0;
    if (strcmp(op, name) != 0)
        return 0;
    count++;
    if (sscanf(when, "%d..%d", &first, &last) == 2)
        return count >= first && count <= last;
    if (sscanf(when, "%d+%d", &first, &step) == 2)
        return count >= first && (count - first) % step == 0;
    return count == first;
}

static void look_at_submissions(struct io_uring *ring)
{
    for (unsigned at = ring->sq.sqe_head; at != ring->sq.sqe_tail; at++) {
        struct io_uring_sqe *sqe = &ring->sq.sqes[at & *ring->sq.kring_mask];
        const char *name = name_of(sqe->opcode);
        int error;
        write_line("submitted %llx %s %d %u %x\n", (unsigned long long)sqe->user_data, name,
                   sqe->fd, sqe->len, sqe->msg_flags);
        if (!chosen(name, &error))
            continue;
        unsigned char flags = sqe->flags & (IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS);
        unsigned long long data = sqe->user_data;
        memset(sqe, 0, sizeof *sqe);
        sqe->opcode = IORING_OP_NOP;
        sqe->flags = flags;
        sqe->rw_flags = (int)NOP_INJECT_RESULT;
        sqe->len = (unsigned)-error;
        sqe->user_data = data;
    }
}

static void look_at_completions(struct io_uring *ring)
{
    static unsigned seen;
    unsigned tail = *(volatile unsigned *)ring->cq.ktail;

    for (; seen != tail; seen++) {
        struct io_uring_cqe *cqe = &ring->cq.cqes[seen & *ring->cq.kring_mask];
        write_line("completed %llx %d %u\n", (unsigned long long)cqe->user_data, cqe->res,
                   cqe->flags);
    }
}

int io_uring_submit(struct io_uring *ring)
{
    int (*next)(struct io_uring *) = NULL;

    *(void **)&next = dlsym(RTLD_NEXT, "io_uring_submit");
    look_at_submissions(ring);
    return next(ring);
}

int io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe_ptr,
                                     unsigned wait_nr, struct __kernel_timespec *ts,
                                     sigset_t *sigmask)
{
    int (*next)(struct io_uring *, struct io_uring_cqe **, unsigned, struct __kernel_timespec *,
                sigset_t *) = NULL;

    *(void **)&next = dlsym(RTLD_NEXT, "io_uring_submit_and_wait_timeout");
    look_at_submissions(ring);
    write_line("entered\n");
    int result = next(ring, cqe_ptr, wait_nr, ts, sigmask);
    look_at_completions(ring);
    return result;
}

struct io_uring_probe *io_uring_get_probe_ring(struct io_uring *ring)
{
    struct io_uring_probe *(*next)(struct io_uring *) = NULL;
    const char *lacks = getenv("RING_LACKS");

    *(void **)&next = dlsym(RTLD_NEXT, "io_uring_get_probe_ring");
    struct io_uring_probe *probe = next(ring);
    for (int i = 0; probe != NULL && lacks != NULL && i < probe->ops_len; i++)
        if (strcmp(name_of(probe->ops[i].op), lacks) == 0)
            probe->ops[i].flags = 0;
    return probe;
}
