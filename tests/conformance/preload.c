/*
 * preload.c: between a server and the libraries below it (LD_PRELOAD).
 *
 *   SHORT_READS=N      pread() and preadv2() read so many bytes at most, and not all that was asked
 *                      for, as a file system may whenever it likes
 *   NOT_CACHED=1       preadv2() finds nothing in memory
 *   AIO=refuse|silent  aio_read() fails; or nobody is told when it is over
 *   NO_MEMORY=FILE     while the file exists every other malloc(), calloc() and realloc() fails, or
 *                      all if it is not empty (compiled with -DMEMORY: a sanitizer wants to have
 *                      them to itself)
 *
 *   CLOCK_SPEED=N      the clock goes N times as fast, the waits are as they were
 *   CLOCK_AHEAD=N      the wall clock is N seconds ahead of the kernel's: as if it had been set back
 *                      right after each look at it
 *   HOLD=FILE          epoll_create1() does not return while the file exists; if there is a number in
 *                      it: in the children of that process
 *
 *   CLOSE_FAILS=ERRNO:FIRST:LAST
 *                      those calls of close() fail, but the descriptor is closed, as Linux does it;
 *                      strace would leave it open
 *   FAIL_SWITCH=FILE   of CLOSE_FAILS and RING_INJECT: nothing fails, or counts, unless the file exists
 *
 * What strace does for system calls, for the operations of an io_uring, which no tracer sees:
 *
 *   RING_WATCH=FILE    a line for each operation handed to the kernel, for each that is done, and for
 *                      each io_uring_enter
 *   RING_INJECT=OP:ERRNO:FIRST:LAST:STEP
 *                      those operations of this kind fail with this error, and are never begun: the
 *                      kernel gets a NOP that ends with it, Linux 6.10. EBADR: their completions are
 *                      lost, and the next wait says so, as the kernel does that has no memory for them
 */
#include <aio.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* What comes after us by this name, as `next`. */
#define NEXT(function)                                                                             \
    __typeof__(function) *next;                                                                    \
    *(void **)&next = dlsym(RTLD_NEXT, #function)

static size_t most = (size_t)-1;
static int fd = -1;

/* Before main(), so that the server has as many descriptors from its first moment on. */
__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("RING_WATCH"), *number = getenv("SHORT_READS");

    if (path != NULL)
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (number != NULL)
        most = strtoul(number, NULL, 10);
}

ssize_t pread(int file, void *buffer, size_t size, off_t offset)
{
    return syscall(SYS_pread64, file, buffer, size < most ? size : most, offset);
}

ssize_t pread64(int file, void *buffer, size_t size, off_t offset)
{
    return pread(file, buffer, size, offset);
}

static bool switched_on(void)
{
    const char *path = getenv("FAIL_SWITCH");

    return path == NULL || access(path, F_OK) == 0;
}

int close(int file)
{
    static atomic_int count;
    int error, first, last;
    const char *fails = getenv("CLOSE_FAILS");
    int result = (int)syscall(SYS_close, file);

    if (result < 0 || fails == NULL || sscanf(fails, "%d:%d:%d", &error, &first, &last) != 3 ||
        !switched_on())
        return result;
    int number = atomic_fetch_add(&count, 1) + 1;
    if (number < first || number > last)
        return result;
    errno = error;
    return -1;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const char *speed = getenv("CLOCK_SPEED"), *ahead = getenv("CLOCK_AHEAD");
    int result = (int)syscall(SYS_clock_gettime, clock, now);

    if (result == 0 && ahead != NULL && clock == CLOCK_REALTIME)
        now->tv_sec += atoi(ahead);

    if (result == 0 && speed != NULL) {
        long long ms = (now->tv_sec * 1000LL + now->tv_nsec / 1000000) * atoi(speed);
        *now = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    }
    return result;
}

static bool is_held(const char *path)
{
    FILE *stream = path != NULL ? fopen(path, "re") : NULL;
    int parent;

    if (stream == NULL)
        return false;
    bool held = fscanf(stream, "%d", &parent) != 1 || parent == getppid();
    fclose(stream);
    return held;
}

int epoll_create1(int flags)
{
    while (is_held(getenv("HOLD")))
        usleep(10000);
    return (int)syscall(SYS_epoll_create1, flags);
}

ssize_t preadv2(int file, const struct iovec *parts, int count, off_t offset, int flags)
{
    struct iovec first = {parts->iov_base, parts->iov_len < most ? parts->iov_len : most};

    (void)count; /* the servers read into one */
    errno = EAGAIN;
    if (getenv("NOT_CACHED") != NULL)
        return -1;
    return syscall(SYS_preadv2, file, &first, 1L, (long)offset, 0L, flags);
}

ssize_t preadv64v2(int file, const struct iovec *parts, int count, off_t offset, int flags)
{
    return preadv2(file, parts, count, offset, flags);
}

int aio_read64(struct aiocb64 *control)
{
    NEXT(aio_read64);
    const char *fault = getenv("AIO");

    errno = EAGAIN;
    if (fault != NULL && strcmp(fault, "refuse") == 0)
        return -1;
    if (fault != NULL)
        control->aio_sigevent.sigev_notify = SIGEV_NONE;
    return next(control);
}

int aio_read(struct aiocb *control)
{
    return aio_read64((struct aiocb64 *)control); /* the same, where off_t has 64 bits */
}

#ifdef MEMORY
void *__libc_malloc(size_t size); /* dlsym() may want memory itself */
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);

static bool fails(void)
{
    static atomic_uint count;
    const char *path = getenv("NO_MEMORY");
    struct stat file;

    if (path == NULL || stat(path, &file) < 0 ||
        (file.st_size == 0 && atomic_fetch_add(&count, 1) % 2 == 0))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}
#endif

#if __has_include(<liburing.h>)
#include <liburing.h>

#define NOP_INJECT_RESULT 1u /* IORING_NOP_INJECT_RESULT, which older headers do not have */

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

static bool lost; /* a completion */

/* Whether this is one of those that shall fail; then with *error. */
static bool chosen(const char *name, int *error)
{
    static int count;
    int first, last, step;
    char op[32];
    const char *inject = getenv("RING_INJECT");

    if (inject == NULL ||
        sscanf(inject, "%31[A-Z0-9_]:%d:%d:%d:%d", op, error, &first, &last, &step) != 5 ||
        strcmp(op, name) != 0 || !switched_on())
        return false;
    count++;
    return count >= first && count <= last && (count - first) % step == 0;
}

static void look_at_submissions(struct io_uring *ring)
{
    for (unsigned at = ring->sq.sqe_head; at != ring->sq.sqe_tail; at++) {
        struct io_uring_sqe *sqe = &ring->sq.sqes[at & *ring->sq.kring_mask], old = *sqe;
        int error;
        const char *name = name_of(sqe->opcode);
        write_line("submitted %llx %s %d %u %x\n", (unsigned long long)sqe->user_data, name,
                   sqe->fd, sqe->len, sqe->msg_flags);
        if (!chosen(name, &error))
            continue;
        memset(sqe, 0, sizeof *sqe);
        sqe->opcode = IORING_OP_NOP;
        sqe->flags = old.flags & (IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS);
        sqe->user_data = old.user_data;
        lost = lost || error == EBADR;
        if (error == EBADR) {
            sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
        } else {
            sqe->rw_flags = (int)NOP_INJECT_RESULT;
            sqe->len = (unsigned)-error;
        }
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
    NEXT(io_uring_submit);
    look_at_submissions(ring);
    return next(ring);
}

int io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe,
                                     unsigned wait_nr, struct __kernel_timespec *ts,
                                     sigset_t *sigmask)
{
    NEXT(io_uring_submit_and_wait_timeout);
    look_at_submissions(ring);
    write_line("entered\n");
    int result = next(ring, cqe, lost ? 0 : wait_nr, ts, sigmask);
    look_at_completions(ring);
    result = lost ? -EBADR : result;
    lost = false;
    return result;
}
#endif
