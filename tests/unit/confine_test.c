/*
 * confine_test: what a worker of 15-slashdot can still do for a client that has taken it over. A
 * child confines itself as a worker does, and then tries; its threads were there before, as the
 * worker's are.
 *
 * Run: build/bin/confine_test
 */
#include "15-slashdot/confine.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "open_below.h"
#include "tap.h"

static char folder[] = "/tmp/confine_test.XXXXXX", below[64], outside[64];
static int root, listeners[2], other; /* DOCROOT; sockets of ours that listen, and another's */
static struct sockaddr_in other_address = {.sin_family = AF_INET};

/* ---- what it must be able to do */

static int open_page(void)
{
    return open_below(root, "page");
}

static int open_folder(void)
{
    return open_below(root, "sub");
}

static int open_null(void)
{
    return open("/dev/null", O_RDONLY);
}

static int start_page(void)
{
    char byte;
    int fd = open_page(), n = (int)pread(fd, &byte, 1, 0);

    close(fd);
    return n == 1 ? 0 : -1;
}

static int use_memory(void)
{
    void *large = malloc(1 << 20), *small = malloc(100);
    bool both = large != NULL && small != NULL;

    free(large);
    free(small);
    return both ? 0 : -1;
}

static int ask_the_kernel_for_the_time(void)
{
#ifdef SYS_time
    return syscall(SYS_time, NULL) > 0 ? 0 : -1;
#else
    return 0;
#endif
}

static int wait_a_moment(void)
{
    struct epoll_event event;
    int fd = epoll_create1(0); /* EPERM: the worker has its own by then */

    return fd < 0 && errno == EPERM && epoll_wait(root, &event, 1, 0) < 0 && errno == EINVAL ? 0
                                                                                             : -1;
}

/* ---- what it must not */

static int open_outside(void)
{
    return open(outside, O_RDONLY);
}

static int open_passwd(void)
{
    return open("/etc/passwd", O_RDONLY);
}

static int open_environment(void)
{
    return open("/proc/1/environ", O_RDONLY);
}

static int write_below(void)
{
    return openat(root, "page", O_WRONLY);
}

static int create_below(void)
{
    return openat(root, "new", O_RDWR | O_CREAT, 0600);
}

static int remove_below(void)
{
    return unlinkat(root, "page", 0);
}

static int make_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}

static int connect_listener(void)
{
    shutdown(listeners[0], SHUT_RD); /* then it can be connected like a new one */
    return connect(listeners[0], (struct sockaddr *)&other_address, sizeof other_address);
}

static int connect_by_sending(void)
{
    shutdown(listeners[0], SHUT_RD);
    return (int)sendto(listeners[0], "x", 1, MSG_FASTOPEN, (struct sockaddr *)&other_address,
                       sizeof other_address);
}

static int connect_by_message(void)
{
    struct iovec byte = {"x", 1};
    struct msghdr message = {.msg_name = &other_address,
                             .msg_namelen = sizeof other_address,
                             .msg_iov = &byte,
                             .msg_iovlen = 1};

    shutdown(listeners[1], SHUT_RD);
    return (int)sendmsg(listeners[1], &message, MSG_FASTOPEN);
}

static int bind_listener(void)
{
    return bind(listeners[0], (struct sockaddr *)&other_address, sizeof other_address);
}

static int run_program(void)
{
    return execl("/bin/true", "true", (char *)NULL);
}

static int run_program_at(void)
{
    char *arguments[] = {(char *)"true", NULL};

    return (int)syscall(SYS_execveat, AT_FDCWD, "/bin/true", arguments, NULL, 0);
}

static int start_process(void)
{
    int pid = (int)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

    if (pid == 0)
        _exit(0);
    return pid;
}

static int signal_other(void)
{
    return kill(1, 0);
}

static int signal_by_descriptor(void)
{
    return fcntl(listeners[0], F_SETOWN, 1);
}

static int trace_other(void)
{
    return (int)ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);
}

static int run_written_memory(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return page == MAP_FAILED ? -2 : mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static int map_to_run(void)
{
    return mmap(NULL, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                   MAP_FAILED
               ? -1
               : 0;
}

static int type_into_terminal(void)
{
    return ioctl(STDERR_FILENO, TIOCSTI, "x");
}

static int make_ring(void)
{
    return (int)syscall(425 /* io_uring_setup */, 8, NULL);
}

static bool has_i386 = true; /* until look_for_i386() has tried */

/* Its number of getpid() is 20, and here that is writev(), which the filter allows. */
static int call_by_number_of_i386(void)
{
    int result = -EPERM;

#if defined(__x86_64__)
    if (has_i386)
        __asm__ volatile("int $0x80"
                         : "=a"(result)
                         : "0"(20)
                         : "memory", "cc", "r8", "r9", "r10", "r11");
#endif
    errno = result < 0 ? -result : 0;
    return result < 0 ? -1 : result;
}

static int become_root(void)
{
    return (int)syscall(SYS_setuid, 0); /* glibc's would wait for the other threads, for ever */
}

static const struct attempt {
    const char *what;
    int (*act)(void);
    bool calls; /* the filter's affair, and not Landlock's */
    int error;  /* 0: it must work */
    bool works; /* for any user, in a process that is not confined */
} attempts[] = {
    {"a page is opened", open_page, false, 0, false},
    {"... and read", start_page, false, 0, false},
    {"a folder below DOCROOT is opened", open_folder, false, 0, false},
    {"/dev/null is opened, for the reserve", open_null, false, 0, false},
    {"memory is to be had", use_memory, false, 0, false},
    {"time() works without the vDSO", ask_the_kernel_for_the_time, false, 0, false},
    {"epoll is waited with, and no other made", wait_a_moment, true, 0, false},
    {"a file beside DOCROOT", open_outside, false, EACCES, true},
    {"/etc/passwd", open_passwd, false, EACCES, true},
    {"another process's environment", open_environment, false, EACCES, false},
    {"a page, to be written", write_below, false, EACCES, true},
    {"a new page", create_below, false, EACCES, true},
    {"a socket", make_socket, true, EPERM, true},
    {"connect of the listening socket", connect_listener, true, EPERM, false},
    {"... by sendto", connect_by_sending, true, EPERM, true},
    {"... by sendmsg", connect_by_message, true, EPERM, true},
    {"bind", bind_listener, true, EPERM, false},
    {"execve", run_program, true, EPERM, true},
    {"execveat", run_program_at, true, EPERM, true},
    {"a process", start_process, true, EPERM, true},
    {"a signal to another", signal_other, true, EPERM, false},
    {"... by a descriptor", signal_by_descriptor, true, EPERM, true},
    {"ptrace", trace_other, true, EPERM, false},
    {"memory that was written, to be run", run_written_memory, true, EPERM, true},
    {"memory to write and run", map_to_run, true, EPERM, true},
    {"a key for the terminal", type_into_terminal, true, EPERM, false},
    {"an io_uring", make_ring, true, EPERM, false},
    {"a call by its number of i386", call_by_number_of_i386, true, EPERM, false},
    {"a page, to be removed", remove_below, true, EPERM, true}, /* the last that needs it */
    {"to be root", become_root, true, EPERM, false},
};
#define ATTEMPTS (sizeof attempts / sizeof *attempts)

struct outcome {
    int result, error;
};

/* Shared with the child, which writes the first half itself and has a thread write the other. */
static struct outcome (*outcomes)[ATTEMPTS];
static pthread_mutex_t confined = PTHREAD_MUTEX_INITIALIZER;

static void try_all(struct outcome *to)
{
    for (size_t i = 0; i < ATTEMPTS; i++) {
        errno = 0;
        to[i].result = attempts[i].act();
        to[i].error = errno;
    }
}

static void *try_in_thread(void *unused)
{
    pthread_mutex_lock(&confined);
    try_all(outcomes[1]);
    pthread_mutex_unlock(&confined);
    return unused;
}

static void set_up(void)
{
    socklen_t len = sizeof other_address;

    if (mkdtemp(folder) == NULL)
        exit(EXIT_FAILURE);
    snprintf(below, sizeof below, "%s/below", folder);
    snprintf(outside, sizeof outside, "%s/outside", folder);
    mkdir(below, 0700);
    root = open(below, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mkdirat(root, "sub", 0700);
    int page = openat(root, "page", O_WRONLY | O_CREAT, 0600), file = creat(outside, 0600);
    if (write(page, "page", 4) != 4 || write(file, "file", 4) != 4)
        exit(EXIT_FAILURE);
    other_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    other = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(other, (struct sockaddr *)&other_address, len) < 0 || listen(other, 9) < 0 ||
        getsockname(other, (struct sockaddr *)&other_address, &len) < 0)
        exit(EXIT_FAILURE);
    for (int i = 0; i < 2; i++) /* on any free port */
        if ((listeners[i] = socket(AF_INET, SOCK_STREAM, 0)) < 0 || listen(listeners[i], 1) < 0)
            exit(EXIT_FAILURE);
}

/* A kernel without i386 ends who makes such a call by a signal. */
static void look_for_i386(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        _exit(call_by_number_of_i386() > 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    has_i386 = waitpid(pid, &status, 0) == pid && status == 0;
}

static void clean_up(void)
{
    unlinkat(root, "page", 0);
    unlinkat(root, "new", 0);
    unlinkat(root, "sub", AT_REMOVEDIR);
    unlink(outside);
    rmdir(below);
    rmdir(folder);
}

static _Noreturn void be_worker(void)
{
    const struct options o = {.docroot_fd = root, .verbose = false};
    pthread_t thread;

    pthread_mutex_lock(&confined);
    confine_files(true, &o);
    if (pthread_create(&thread, NULL, try_in_thread, NULL) != 0)
        _exit(EXIT_FAILURE);
    confine_calls(true, &o);
    try_all(outcomes[0]);
    pthread_mutex_unlock(&confined);
    pthread_join(thread, NULL);
    _exit(EXIT_SUCCESS);
}

/* A test that refuses what never works says nothing. */
static void try_unconfined(const struct attempt *a)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(a->act() >= 0 || errno == EOPNOTSUPP /* net.ipv4.tcp_fastopen */
                  ? EXIT_SUCCESS
                  : EXIT_FAILURE);
    tap_ok(waitpid(pid, &status, 0) == pid && status == 0, "not confined: %s", a->what);
}

/* Where the kernel has no Landlock, or no filter, there is nothing to see of it. */
static bool has_landlock(void)
{
    return !CONFINE_NEVER && syscall(444, NULL, 0L, 1L) > 0;
}

static bool has_filter(void)
{
    return !CONFINE_NEVER && prctl(PR_GET_SECCOMP) >= 0;
}

static void judge(const struct attempt *a, const struct outcome *o, const char *who)
{
    bool works = o->result >= 0;

    if (a->error != 0 && !(a->calls ? has_filter() : has_landlock()))
        tap_ok(true, "%s: %s # skip: not confined here", who, a->what);
    else if (a->error == 0)
        tap_ok(works || CONFINE_NEVER, "%s: %s: %d (%s)", who, a->what, o->result,
               strerror(o->error));
    else
        tap_ok(!works && o->error == a->error, "%s, refused: %s: %d (%s)", who, a->what, o->result,
               strerror(o->error));
}

int main(void)
{
    int status;

    set_up();
    look_for_i386();
    outcomes =
        mmap(NULL, 2 * sizeof *outcomes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60); /* no confinement can make it wait for ever */
        be_worker();
    }
    tap_ok(waitpid(pid, &status, 0) == pid && status == 0, "a confined process ends as it wants");
    for (size_t i = 0; i < ATTEMPTS; i++) {
        judge(&attempts[i], &outcomes[0][i], "worker");
        judge(&attempts[i], &outcomes[1][i], "its thread");
    }
    for (size_t i = 0; i < ATTEMPTS; i++)
        if (attempts[i].works)
            try_unconfined(&attempts[i]);
    clean_up();
    return tap_done();
}
