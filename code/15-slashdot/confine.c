#include "15-slashdot/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "die.h"

/* By hand: the headers of a system may be older than its kernel. As in linux/landlock.h. */
enum { CREATE_RULESET = 444, ADD_RULE, RESTRICT_SELF, READ_FILE = 1 << 2, READ_DIR = 1 << 3 };
struct __attribute__((packed)) rule_below {
    uint64_t allowed;
    int32_t fd;
};

/* A kernel refuses rights that it does not know: landlock(7) lists them by version. */
static int new_ruleset(void)
{
    long version = syscall(CREATE_RULESET, NULL, 0L, 1L);
    int rights = version >= 5 ? 16 : version >= 3 ? 15 : version >= 2 ? 14 : 13;
    size_t fields = version >= 6 ? 3 : version >= 4 ? 2 : 1;
    const uint64_t refused[] = {(1U << rights) - 1, 3 /* bind, connect */, 3 /* Unix, signals */};

    return version > 0 ? (int)syscall(CREATE_RULESET, refused, fields * sizeof *refused, 0L) : -1;
}

static bool allow(int ruleset, int fd, uint64_t what)
{
    return syscall(ADD_RULE, ruleset, 1L, &(struct rule_below){what, fd}, 0L) == 0;
}

static bool no_new_privileges(void) /* without it root alone may confine itself */
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0;
}

void confine_files(bool wanted, const struct options *o)
{
    int null = open("/dev/null", O_PATH | O_CLOEXEC), ruleset = new_ruleset();
    bool done = CONFINE_NEVER || !wanted ||
                (ruleset >= 0 && allow(ruleset, o->docroot_fd, READ_FILE | READ_DIR) &&
                 allow(ruleset, null, READ_FILE) && no_new_privileges() &&
                 syscall(RESTRICT_SELF, ruleset, 0L) == 0);

    if (!done && o->verbose)
        warn_errno("workers without Landlock");
    close(null);
    close(ruleset);
}

/* Each processor has its own numbers of calls: on others than these there is no filter. */
#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__) /* it has the newer calls only */
#define ARCH           AUDIT_ARCH_AARCH64
#define SYS_alarm      SYS_setitimer
#define SYS_epoll_wait SYS_epoll_pwait
#define SYS_poll       SYS_ppoll
#define SYS_time       SYS_clock_gettime
#endif

#ifdef ARCH
/* clang-format off */
#define REFUSE      BPF_STMT(BPF_RET, SECCOMP_RET_ERRNO | EPERM)
#define ALLOW       BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW)
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(what)    BPF_JUMP(BPF_JMP | BPF_JEQ, what, 0, 1)
#define CALL(name)  IF(SYS_##name), ALLOW
/* Only where (argument & mask) == value. Compares the lower half: these arguments are all int. */
#define PART(name, argument, mask, value) LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ, SYS_##name, 0, 4), \
    LOAD(args[argument]), BPF_STMT(BPF_ALU | BPF_AND, mask), IF(value), ALLOW
static const struct sock_filter calls[] = {
    LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ, ARCH, 1, 0), REFUSE, /* i386 has other numbers */
    PART(sendto, 3, MSG_FASTOPEN, 0),  /* would connect a socket that has been shut down */
    PART(sendmsg, 2, MSG_FASTOPEN, 0),
    PART(mmap, 2, PROT_EXEC, 0),       /* would run what was written to memory */
    PART(mprotect, 2, PROT_EXEC, 0),
    PART(ioctl, 1, ~0U, TIOCOUTQ),     /* TIOCSTI would type into a terminal that is stderr */
    PART(fcntl, 1, ~0U, F_GET_SEALS),  /* F_SETOWN and F_SETSIG would send signals to others */
    PART(fcntl, 1, ~0U, F_DUPFD_CLOEXEC),
    PART(setsockopt, 1, ~0U, IPPROTO_TCP),
    LOAD(nr),
    CALL(accept4), CALL(alarm), CALL(brk), CALL(clock_gettime), CALL(close), CALL(epoll_ctl),
    CALL(epoll_pwait), CALL(epoll_wait), CALL(exit), CALL(exit_group), CALL(fstat), CALL(fstatfs),
    CALL(futex), CALL(getrandom), CALL(madvise), CALL(mremap), CALL(munmap), CALL(newfstatat),
    CALL(openat), CALL(openat2), CALL(poll), CALL(ppoll), CALL(pread64), CALL(preadv2), CALL(read),
    CALL(readahead), CALL(recvfrom), CALL(restart_syscall), CALL(rt_sigaction),
    CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(sendfile), CALL(setitimer), CALL(shutdown),
    CALL(statx), CALL(write), CALL(writev), CALL(getpeername), /* getpeername(): labs/15-slashdot */
    CALL(time), /* time() makes it only where the kernel has no vDSO (vdso(7)) */
    CALL(rseq), CALL(set_robust_list), REFUSE, /* both of a thread that has just been started */
};
/* clang-format on */
static bool filter_calls(void)
{
    struct sock_fprog program = {sizeof calls / sizeof *calls, (struct sock_filter *)calls};

    return no_new_privileges() &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}
#else
#define filter_calls() (errno = ENOTSUP, false)
#endif

void confine_calls(bool wanted, const struct options *o)
{
    if (!CONFINE_NEVER && wanted && !filter_calls() && o->verbose)
        warn_errno("workers without a filter of system calls");
}
