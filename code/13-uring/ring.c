#include "13-uring/ring.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "die.h"
#include "http_parse.h"

#define SUBMISSIONS     256
#define SLOTS_MAX       131072
#define RECEIVE_BUFFERS 64 /* a power of two */
#define PAUSE_MS        10

static struct io_uring ring;
static int slots;
static bool closes_late;
bool ring_lost;

static struct io_uring_buf_ring *provided;
static _Alignas(4096) char received[RECEIVE_BUFFERS][HTTP_HEAD_MAX];

/* `result` is what liburing returned: minus the errno. */
static void demand(const char *what, int result)
{
    const char *remedy = "Linux 6.1 or later is needed";

    if (result >= 0)
        return;
    errno = -result;
    if (errno == EMFILE || errno == ENFILE) /* a limit like any other */
        die_errno("%s", what);
    if (errno == EPERM || errno == EACCES)
        remedy =
            "forbidden by sysctl kernel.io_uring_disabled, or by a container's seccomp profile";
    if (errno == ENOSYS) /* some profiles answer so, too */
        remedy = "Linux 6.1 or later is needed, or a container's seccomp profile hides it";
    if (errno == ENOMEM)
        remedy = "raise the limit of locked memory (ulimit -l), or that of the container";
    die(EXIT_UNSUPPORTED, "%s: %s: %s", what, strerror(errno), remedy);
}

/* Workers of the kernel count as processes of the user. Without one no file can be served (each
 * statx needs one), so the first is made here, where a failure can still be told. It stays. */
static void demand_worker(void)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    struct io_uring_cqe *cqe;
    int result;

    io_uring_prep_nop(sqe);
    sqe->flags |= IOSQE_ASYNC;
    do /* -EINTR: the signal to stop came; event_loop() will see that */
        result = io_uring_submit_and_wait(&ring, 1);
    while (result == -EINTR);
    demand("io_uring_enter", result);
    do
        result = io_uring_wait_cqe(&ring, &cqe);
    while (result == -EINTR);
    demand("io_uring_enter", result);
    if (cqe->res < 0) /* the result is ECANCELED, whatever the reason */
        die(EXIT_FAILURE, "io_uring: there is no room for a worker of the kernel (ulimit -u)");
    io_uring_cqe_seen(&ring, cqe);
}

static void provide(int id)
{
    io_uring_buf_ring_add(provided, received[id], sizeof received[id], (unsigned short)id,
                          io_uring_buf_ring_mask(RECEIVE_BUFFERS), 0);
    io_uring_buf_ring_advance(provided, 1);
}

static void provide_all(void)
{
    struct io_uring_buf_reg reg = {.ring_entries = RECEIVE_BUFFERS};
    void *places;

    errno = posix_memalign(&places, 4096, RECEIVE_BUFFERS * sizeof(struct io_uring_buf));
    if (errno != 0)
        die_errno("posix_memalign");
    provided = places;
    io_uring_buf_ring_init(provided);
    reg.ring_addr = (unsigned long)provided;
    demand("io_uring_register PBUF_RING", io_uring_register_buf_ring(&ring, &reg, 0));
    for (int id = 0; id < RECEIVE_BUFFERS; id++)
        provide(id);
}

/* The kernel makes no table larger than the limit of descriptors, although its slots are no
 * descriptors. */
static void make_slots(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        die_errno("getrlimit");
    slots = limit.rlim_cur < SLOTS_MAX ? (int)limit.rlim_cur : SLOTS_MAX;
    demand("io_uring_register FILES2", io_uring_register_files_sparse(&ring, (unsigned)slots));
}

/*
 * DEFER_TASKRUN came with Linux 6.1, later than the operations that this server needs: a kernel
 * that takes the flag has them. (The two commands of 6.7 may fail: steps.c.) With it, and
 * SINGLE_ISSUER, which it demands, completions are added only inside io_uring_enter(), which
 * ring_wait(), ring_room() and ring_next() may call.
 */
void ring_set_up(unsigned workers)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE |
                 IORING_SETUP_SUBMIT_ALL,
        .cq_entries = RING_COMPLETIONS,
    };
    unsigned most[2] = {workers, 0}; /* for files; 0: the other kind stays as it is */
    struct utsname kernel;
    int major, minor;

    demand("io_uring_setup", io_uring_queue_init_params(SUBMISSIONS, &ring, &params));
    make_slots();
    demand("io_uring_register IOWQ_MAX_WORKERS", io_uring_register_iowq_max_workers(&ring, most));
    demand_worker();
    provide_all();
    (void)io_uring_register_ring_fd(&ring); /* only saves a look-up in each call */
    closes_late = uname(&kernel) == 0 && sscanf(kernel.release, "%d.%d", &major, &minor) == 2 &&
                  (major < 6 || (major == 6 && minor < 13));
}

int ring_slots(void)
{
    return slots;
}

bool ring_closes_late(void)
{
    return closes_late;
}

bool ring_room(void)
{
    if (io_uring_sq_space_left(&ring) < RING_STEP)
        (void)io_uring_submit(&ring); /* EAGAIN, EBUSY: the completions have to be taken first */
    return io_uring_sq_space_left(&ring) >= RING_STEP;
}

struct io_uring_sqe *ring_sqe(unsigned long long data)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

    if (sqe == NULL)
        abort(); /* RING_STEP is too small */
    io_uring_sqe_set_data64(sqe, data);
    return sqe;
}

/*
 * Errors that pass. EAGAIN, EBUSY, ENOMEM: the kernel lacks memory, or took only some of the
 * submissions. EBADR: it had no memory to keep completions, and lost some. A connection that waits
 * for a lost one is shut at its time-out (after a receive, at the second one) and never freed: the
 * kernel may still use its memory. One whose send was lost stays until the client ends it. A client
 * whose accept was lost keeps its slot; submit_accept() accepts again. After EBADR, or if
 * ring_next() can take no completion, this pauses: to try again at once would be a busy loop.
 */
static void handle_failed_wait(int error)
{
    static int said;

    /* The kernel reports EBADR only by a call that has submitted nothing. If submissions are left,
     * the cancel for an earlier EBADR may be one of them: a second is not needed. */
    ring_lost |= error == EBADR && io_uring_sq_ready(&ring) == 0;
    errno = error;
    if (error != EAGAIN && error != EBUSY && error != ENOMEM && error != EBADR)
        die_errno("io_uring_enter");
    bool can_go_on = io_uring_cq_ready(&ring) > 0 && io_uring_sq_space_left(&ring) >= RING_STEP;
    if (can_go_on && error != EBADR)
        return;
    if (error != said)
        warn_errno("io_uring_enter");
    said = error;
    poll(NULL, 0, PAUSE_MS);
}

void ring_wait(int ms)
{
    struct __kernel_timespec limit = {ms / 1000, ms % 1000 * 1000000LL};
    struct io_uring_cqe *cqe;
    int result = io_uring_submit_and_wait_timeout(&ring, &cqe, 1, ms < 0 ? NULL : &limit, NULL);

    if (result < 0 && result != -ETIME && result != -EINTR)
        handle_failed_wait(-result);
}

/* If the queue of completions is full the kernel keeps the rest (IORING_FEAT_NODROP), unless it
 * lacks memory (EBADR), and liburing fetches it when the queue is empty. */
bool ring_next(struct io_uring_cqe *cqe)
{
    struct io_uring_cqe *next;

    if (!ring_room() || io_uring_peek_cqe(&ring, &next) != 0)
        return false;
    cqe->user_data = next->user_data; /* not *cqe = *next: the struct has an open end */
    cqe->res = next->res;
    cqe->flags = next->flags;
    io_uring_cqe_seen(&ring, next);
    return true;
}

static int buffer_id(const struct io_uring_cqe *cqe)
{
    return cqe->flags & IORING_CQE_F_BUFFER ? (int)(cqe->flags >> IORING_CQE_BUFFER_SHIFT) : -1;
}

const char *ring_received(const struct io_uring_cqe *cqe)
{
    return buffer_id(cqe) >= 0 ? received[buffer_id(cqe)] : NULL;
}

void ring_give_back(const struct io_uring_cqe *cqe)
{
    if (buffer_id(cqe) >= 0)
        provide(buffer_id(cqe));
}

void ring_end(void)
{
    (void)io_uring_submit(&ring);
    io_uring_queue_exit(&ring);
}
