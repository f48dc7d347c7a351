#include "13-uring/ring.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "die.h"

#define SLOTS_MAX 131072
#define REST_MS   10 /* where the kernel has no memory */

static struct io_uring ring;
static int slots;

/* What the server submits. All of it is older than the flags of make_ring(), but who knows of a
 * kernel of somebody else's making. */
static const struct {
    int opcode;
    const char *name;
} needed[] = {
    {IORING_OP_ACCEPT, "ACCEPT"},     {IORING_OP_ASYNC_CANCEL, "ASYNC_CANCEL"},
    {IORING_OP_CLOSE, "CLOSE"},       {IORING_OP_OPENAT2, "OPENAT2"},
    {IORING_OP_POLL_ADD, "POLL_ADD"}, {IORING_OP_READ, "READ"},
    {IORING_OP_RECV, "RECV"},         {IORING_OP_SEND, "SEND"},
    {IORING_OP_SHUTDOWN, "SHUTDOWN"}, {IORING_OP_STATX, "STATX"},
};

/* /proc/sys/kernel/io_uring_disabled: 0 nobody, 1 those outside a group, 2 all; -1: not there. */
static int disabled(void)
{
    FILE *file = fopen("/proc/sys/kernel/io_uring_disabled", "re");
    int value = -1;

    if (file == NULL)
        return -1;
    if (fscanf(file, "%d", &value) != 1)
        value = -1;
    fclose(file);
    return value;
}

static const char *remedy(int error)
{
    switch (error) {
    case ENOSYS:
        return "a kernel without io_uring, or a container that hides it: Linux 6.1 or later is "
               "needed, and a seccomp profile that allows it";
    case EPERM:
    case EACCES:
        if (disabled() > 0)
            return "forbidden by a setting of the kernel: sysctl -w kernel.io_uring_disabled=0 "
                   "(as root) allows it";
        return "forbidden by a container: run it with a seccomp profile that allows io_uring "
               "(docker run --security-opt seccomp=unconfined)";
    case ENOMEM:
        return "no memory for the rings: raise the limit of locked memory (ulimit -l), or that of "
               "the container";
    default:
        return "Linux 6.1 or later is needed";
    }
}

/* `result` is what liburing returned: minus the errno. */
static void demand(const char *what, int result)
{
    struct utsname system;

    if (result >= 0)
        return;
    if (result == -EMFILE || result == -ENFILE) { /* a limit like any other */
        errno = -result;
        die_errno("%s", what);
    }
    die(EXIT_UNSUPPORTED, "%s: %s: %s; this is Linux %s", what, strerror(-result), remedy(-result),
        uname(&system) == 0 ? system.release : "unknown");
}

/*
 * DEFER_TASKRUN, Linux 6.1, with what it demands, SINGLE_ISSUER: what the kernel has to do in our
 * name, an accept() of somebody who has just come, say, it does while we are in io_uring_enter() to
 * wait, and at no other time. So between two waits nothing changes behind our back, and no
 * interrupt is needed to make it so.
 */
static void make_ring(void)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE |
                 IORING_SETUP_SUBMIT_ALL,
        .cq_entries = RING_COMPLETIONS,
    };

    demand("io_uring_setup", io_uring_queue_init_params(RING_SUBMISSIONS, &ring, &params));
}

static void probe(void)
{
    struct io_uring_probe *found = io_uring_get_probe_ring(&ring);

    if (found == NULL)
        demand("io_uring_register PROBE", errno == ENOMEM ? -ENOMEM : -EPERM);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!io_uring_opcode_supported(found, needed[i].opcode))
            die(EXIT_UNSUPPORTED, "io_uring has no %s here: %s", needed[i].name, remedy(EINVAL));
    io_uring_free_probe(found);
}

/* What may block is done by workers of the kernel, which count as the user's processes. Without one
 * no file could be opened. The first is made when it is needed, so here it is; and it stays. */
static void demand_worker(void)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    struct io_uring_cqe *cqe;

    io_uring_prep_nop(sqe);
    sqe->flags |= IOSQE_ASYNC;
    demand("io_uring_enter", io_uring_submit_and_wait(&ring, 1));
    demand("io_uring_enter", io_uring_wait_cqe(&ring, &cqe));
    if (cqe->res < 0) /* ECANCELED, but that is not why */
        die(EXIT_FAILURE, "io_uring: there is no room for a worker of the kernel (ulimit -u)");
    io_uring_cqe_seen(&ring, cqe);
}

/* The table takes no numbers of the process, but the kernel makes none larger than the limit of
 * descriptors. */
static void make_slots(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        die_errno("getrlimit");
    slots = limit.rlim_cur < SLOTS_MAX ? (int)limit.rlim_cur : SLOTS_MAX;
    demand("io_uring_register FILES2", io_uring_register_files_sparse(&ring, (unsigned)slots));
}

void ring_set_up(unsigned workers)
{
    unsigned most[2] = {workers, 0}; /* bounded work: files; and the other kind: 0 leaves it */

    make_ring();
    probe();
    make_slots();
    demand("io_uring_register IOWQ_MAX_WORKERS", io_uring_register_iowq_max_workers(&ring, most));
    demand_worker();
    (void)io_uring_register_ring_fd(&ring); /* saves a look-up in each call; it goes without */
}

void ring_provide(struct io_uring_buf_ring *queue, unsigned count)
{
    struct io_uring_buf_reg reg = {
        .ring_addr = (unsigned long)queue,
        .ring_entries = count,
    };

    demand("io_uring_register PBUF_RING", io_uring_register_buf_ring(&ring, &reg, 0));
}

int ring_slots(void)
{
    return slots;
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

/* At once again would be a busy loop, if there is nothing to be done. */
static void rest(void)
{
    static int said;
    int error = errno;

    if (io_uring_cq_ready(&ring) > 0 && error != EBADR)
        return;
    if (error != said)
        warn_errno("io_uring_enter");
    said = error;
    poll(NULL, 0, REST_MS);
}

void ring_wait(int ms)
{
    struct __kernel_timespec limit = {ms / 1000, ms % 1000 * 1000000LL};
    struct io_uring_cqe *cqe;
    int result = io_uring_submit_and_wait_timeout(&ring, &cqe, 1, ms < 0 ? NULL : &limit, NULL);

    errno = -result;
    switch (-result) {
    case EBADR: /* completions were lost: the kernel had no memory to keep them. Whoever waits for
                   one is ended by its time-out, and keeps what the kernel may still be using */
    case ENOMEM:
    case EAGAIN: /* it took not all, and will after some completions; or it lacks memory, too */
    case EBUSY:
        rest();
        break;
    case ETIME:
    case EINTR:
        break;
    default:
        if (result < 0)
            die_errno("io_uring_enter");
    }
}

/* A queue of completions that is full loses nothing: the kernel keeps what is left over
 * (IORING_FEAT_NODROP), and liburing asks for it. */
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

void ring_end(void)
{
    (void)io_uring_submit(&ring);
    io_uring_queue_exit(&ring);
}
