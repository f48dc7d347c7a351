/*
 * confine.c: confine [-u] [PROGRAM ARGUMENTS...]: runs a program that was handed in, without the
 * system calls that no server of a lab needs and that reach far into the kernel. -u: with io_uring.
 * Without a PROGRAM it writes the filter to stdout, as bwrap --seccomp wants it.
 *
 * A cell bounds what a program sees; this bounds what it may ask for. New namespaces would give it
 * capabilities over parts of the kernel that were never meant for everybody; what is not charged to
 * RLIMIT_AS (files in memory, System V's shared memory) would be memory without an end.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define NATIVE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define NATIVE AUDIT_ARCH_AARCH64
#elif defined __riscv && __riscv_xlen == 64
#define NATIVE AUDIT_ARCH_RISCV64
#else
#error "the sandbox has no filter of system calls for this processor"
#endif

#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |     \
     CLONE_NEWCGROUP)
/* And no child that a tracer is not told of, or that is somebody else's: the judge counts what a
 * server starts. */
#define REFUSED_FLAGS (NEW_NAMESPACES | CLONE_UNTRACED | CLONE_PARENT)
/* Numbers that old headers lack are the same on all three. */
#define MOUNT_SETATTR 442
#define MEMFD_SECRET  447

static const unsigned refused[] = {
    SYS_unshare,
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    MOUNT_SETATTR,
    SYS_open_by_handle_at,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_pidfd_getfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_fanotify_init,
    SYS_quotactl,
    SYS_memfd_create,
    MEMFD_SECRET,
    SYS_shmget,
    SYS_msgget,
    SYS_semget,
}; /* clang-format would make a column of them */
static const unsigned uring[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register};
static const unsigned families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

static struct sock_filter filter[128];
static unsigned short length;

static void add(unsigned code, unsigned value, unsigned jump_true, unsigned jump_false)
{
    filter[length++] = (struct sock_filter){(unsigned short)code, (unsigned char)jump_true,
                                            (unsigned char)jump_false, value};
}

static void load(size_t offset)
{
    add(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset, 0, 0);
}

static void answer(unsigned what)
{
    add(BPF_RET | BPF_K, what, 0, 0);
}

/* Ends in an error for a call of this number, and goes on for the others. */
static void refuse(unsigned number, int error)
{
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    answer(SECCOMP_RET_ERRNO | (unsigned)error);
}

static void make_filter(int with_uring)
{
    const unsigned count = sizeof families / sizeof *families;

    load(offsetof(struct seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0);
    answer(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(struct seccomp_data, nr));
    /* A call that a tracer has taken away, to inject an error in its place, has this number. */
    add(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 0, 1);
    answer(SECCOMP_RET_ALLOW);
#ifdef __x86_64__
    add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1); /* x32: the same calls by other numbers */
    answer(SECCOMP_RET_KILL_PROCESS);
#endif
    for (unsigned i = 0; i < sizeof refused / sizeof *refused; i++)
        refuse(refused[i], EPERM);
    for (unsigned i = 0; !with_uring && i < sizeof uring / sizeof *uring; i++)
        refuse(uring[i], ENOSYS);
    /* Its flags lie in memory, which a filter cannot read. The C library falls back to clone. */
    refuse(SYS_clone3, ENOSYS);
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
    load(offsetof(struct seccomp_data, args[0]));
    add(BPF_JMP | BPF_JSET | BPF_K, REFUSED_FLAGS, 0, 1);
    answer(SECCOMP_RET_ERRNO | EPERM);
    answer(SECCOMP_RET_ALLOW);
    /* Some families, as AF_VSOCK, know no namespaces. */
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, count + 2);
    load(offsetof(struct seccomp_data, args[0]));
    for (unsigned i = 0; i < count; i++)
        add(BPF_JMP | BPF_JEQ | BPF_K, families[i], count - i, 0);
    answer(SECCOMP_RET_ERRNO | EAFNOSUPPORT);
    answer(SECCOMP_RET_ALLOW);
}

int main(int argc, char **argv)
{
    int with_uring = argc > 1 && strcmp(argv[1], "-u") == 0;
    char **program = argv + 1 + with_uring;
    struct sock_fprog made = {.filter = filter};

    make_filter(with_uring);
    made.len = length;
    if (*program == NULL)
        return write(STDOUT_FILENO, filter, length * sizeof *filter) < 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &made, 0, 0) < 0) {
        perror("confine: this machine has no filter of system calls");
        return 1;
    }
    execv(*program, program);
    perror(*program);
    return 127;
}
