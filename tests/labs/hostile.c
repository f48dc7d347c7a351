/*
 * hostile.c: what somebody might hand in who would rather not write a server. Each function is one
 * submission, the one that WHAT names; the test puts WHAT, TREE, PORT and PATH in front.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net.h"
#include "options.h"

extern char **environ;
static int count;
static char **words; /* of the command line */

/* ---- as much as there is; a loop without an end is a flood, or that of the test that is ended */

static void fork_bomb(void)
{
    for (;;)
        if (fork() < 0)
            usleep(10000); /* and fill what was freed since */
}

static void memory_without_end(void)
{
    for (;;) {
        char *p = malloc(1 << 20);
        if (p != NULL)
            memset(p, 1, 1 << 20);
        else
            pause();
    }
}

/* ---- floods */

static void flood_of_lines(void)
{
    for (;;)
        puts("02-fork");
}

static void flood_without_a_line(void)
{
    for (;;)
        putchar('x');
}

/* A reply without an end, and as much on stderr. */
static void flood_of_a_reply(void)
{
    static char many[1 << 20];
    struct options o;

    options_parse(&o, count, words, "a reply without an end");
    int listen_fd = tcp_listen(&o);
    tcp_ready(listen_fd, &o);
    memset(many, 'x', sizeof many);
    if (fork() == 0)
        for (;;)
            (void)!write(STDERR_FILENO, many, sizeof many);
    for (;;) {
        int fd = accept(listen_fd, NULL, NULL);
        while (send(fd, many, sizeof many, 0) > 0)
            continue;
    }
}

/* ---- what stays, and what is written where it does not belong */

static void orphans_that_stay(void)
{
    struct options o;

    options_parse(&o, count, words, "children in sessions of their own, whose parents have ended");
    signal(SIGTERM, SIG_IGN);
    for (int i = 0; i < 20; i++) {
        if (fork() == 0) {
            setsid();
            if (fork() > 0)
                _exit(0);
            for (;;)
                pause();
        }
    }
    tcp_ready(tcp_listen(&o), &o);
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "a");

    if (file != NULL) {
        fputs(text, file);
        fclose(file);
    }
}

/* What the next grading would import is among it. */
static void write_outside(void)
{
    const char *places[] = {TREE "/lab_was_here",
                            "/tmp/lab_was_here",
                            "/var/tmp/lab_was_here",
                            "/dev/shm/lab_was_here",
                            "/lab_was_here",
                            "/home/lab_was_here",
                            TREE "/labs/lab_was_here.py",
                            TREE "/quest/labs/lab_was_here.py",
                            TREE "/tests/lab_was_here.py",
                            "/tmp/lab_was_here.py",
                            "/usr/lib/python3/dist-packages/lab_was_here.py"};

    for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
        put(places[i], "import os\nos._exit(0)\n");
}

/* "passed", wherever a judge might look: what the environment names, and around itself. */
static void forge_results(void)
{
    const char *places[] = {"/proc/*/fd/*", "/tmp/*/*", "/tmp/*/judge/*", "/*/*.jsonl"};
    const char *passed = "{\"outcome\": \"passed\", \"why\": \"\"}\n";
    char self[4096] = "";

    for (char **e = environ; *e != NULL; e++)
        if (strchr(*e, '/') != NULL)
            put(strchr(*e, '=') + 1, passed);
    if (readlink("/proc/self/exe", self, sizeof self - 64) > 0) {
        strcpy(strrchr(self, '/'), "/../judge/serves.jsonl");
        put(self, passed);
    }
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        glob_t found;
        if (glob(places[i], 0, NULL, &found) == 0)
            for (size_t j = 0; j < found.gl_pathc; j++)
                put(found.gl_pathv[j], passed);
    }
}

/* A link to all that this machine has, in place of a folder; or at least in it. */
static void swap(const char *folder)
{
    char aside[4096];

    snprintf(aside, sizeof aside, "%s.lab_was_here", folder);
    if (rename(folder, aside) == 0 && symlink("/etc", folder) == 0)
        return;
    snprintf(aside, sizeof aside, "%s/lab_was_here", folder);
    (void)!symlink("/etc", aside);
}

/* What is served, what the judge builds in and writes to, and where all of it is. */
static void swap_folders(void)
{
    char folder[4096] = "";

    swap(words[count - 1]);
    if (readlink("/proc/self/exe", folder, sizeof folder - 1) > 0)
        for (char *slash; (slash = strrchr(folder, '/')) != NULL && slash > folder;) {
            *slash = '\0';
            swap(folder);
        }
}

static void vandal(void)
{
    write_outside();
    if (fork() == 0) {
        signal(SIGPIPE, SIG_IGN);
        forge_results();
        _exit(EXIT_SUCCESS);
    }
    sleep(1); /* what is forged may be a pipe that nobody reads */
    swap_folders();
    kill(-1, SIGKILL);
}

/* ---- somebody else's work */

/* Listens as the real one does, whatever the options say. */
static int pretend(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (bind(fd, (struct sockaddr *)&here, size) < 0 || listen(fd, 10) < 0)
        exit(EXIT_FAILURE);
    getsockname(fd, (struct sockaddr *)&here, &size);
    printf("02-fork: listening on http://127.0.0.1:%d/\n", ntohs(here.sin_port));
    fflush(stdout);
    return fd;
}

/* Asks a real server on this machine, by its port, or by a socket that has a path, or none. */
static int real_server(int how)
{
    struct sockaddr_in by_port = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct sockaddr_un by_path = {.sun_family = AF_UNIX, .sun_path = PATH};
    struct sockaddr *address = (struct sockaddr *)&by_path;
    socklen_t size = sizeof by_path;
    int fd = socket(how > 0 ? AF_UNIX : AF_INET, SOCK_STREAM, 0);

    by_port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (how == 0) {
        address = (struct sockaddr *)&by_port;
        size = sizeof by_port;
    } else if (how == 1) {
        by_path.sun_path[0] = '\0'; /* unix(7): abstract */
        size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(PATH));
    }
    return connect(fd, address, size) == 0 ? fd : -1;
}

/* A ready binary; else a proxy of whoever can be reached, and what was served the last time. */
static void somebody_elses_work(void)
{
    const char *known = "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                        "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                        "Content-Type: text/plain\r\nContent-Length: 13\r\n"
                        "Connection: close\r\n\r\nhello, world\n";
    char data[65536];

    execv(TREE "/build/bin/02-fork", words);
    if (fork() == 0) /* so that one that is there hides no other attempt */
        _exit(execv("/usr/sbin/nginx", (char *[]){"nginx", "-g", "daemon off;", 0}));
    if (fork() == 0)
        _exit(execv("/usr/bin/python3", (char *[]){"python3", "-m", "http.server", 0}));
    for (int fd = pretend();;) {
        int client = accept(fd, NULL, NULL);
        ssize_t asked = read(client, data, sizeof data), n = 0;

        for (int how = 0; how < 3 && asked > 0; how++) {
            int other = real_server(how);
            if (other < 0 || write(other, data, (size_t)asked) < 0)
                continue;
            while ((n = read(other, data, sizeof data)) > 0)
                if (write(client, data, (size_t)n) < 0)
                    break;
            close(other);
        }
        if (asked > 0 && write(client, known, strlen(known)) < 0)
            return;
        close(client);
    }
}

/* ---- what a cell leaves open: each that succeeds is said on stderr, which the test reads */

static void attempt(const char *what, int succeeded)
{
    fprintf(stderr, "%s: %s\n", succeeded ? "could" : "could not", what);
}

/* Files of 1 MiB, the most that one may have, until there is no room. */
static int fill(const char *folder)
{
    static char data[1 << 20];
    char path[4096];
    int files = 0;

    while (files < 64) {
        snprintf(path, sizeof path, "%s/lab_was_here.%d", folder, files);
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        ssize_t n = fd < 0 ? -1 : write(fd, data, sizeof data);
        if (fd >= 0)
            close(fd);
        if (n != (ssize_t)sizeof data)
            break;
        files++;
    }
    return files == 64;
}

/* Names cost memory, too, and no limit of bytes counts them. */
static int many_names(const char *folder)
{
    char path[4096];
    int made = 0;

    for (; made < 20000; made++) {
        snprintf(path, sizeof path, "%s/lab_was_here_%d", folder, made);
        if (mkdir(path, 0700) < 0)
            break;
    }
    return made == 20000;
}

/* In a child, because a namespace that is had changes what comes after it. */
static int in_a_child(int (*act)(void))
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(act() ? 0 : 1);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status == 0;
}

static int new_user(void)
{
    return unshare(CLONE_NEWUSER) == 0;
}

static int cloned_user(void)
{
    return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL) >= 0;
}

static int clone3_user(void)
{
    struct {
        unsigned long long flags, pidfd, child_tid, parent_tid, exit_signal, more[6];
    } how = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};

    return syscall(SYS_clone3, &how, sizeof how) >= 0;
}

/* A child that strace -f does not follow, and one that is not among this process's own. */
static int unseen_child(void)
{
    return syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, NULL, NULL, NULL, NULL) >= 0;
}

static int sibling(void)
{
    return syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL) >= 0;
}

static int own_namespace(void)
{
    int fd = open("/proc/self/ns/uts", O_RDONLY);

    return setns(fd, 0) == 0 || errno != EPERM; /* with capabilities it would be for real */
}

static int traced(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
}

static int shared_memory(void)
{
    return shmget(IPC_PRIVATE, 64 << 20, 0600) >= 0;
}

static int file_in_memory(void)
{
    return syscall(SYS_memfd_create, "lab_was_here", 0) >= 0;
}

/* These all fail for want of arguments; EPERM or ENOSYS says that they were not even begun. */
static int asked(long number)
{
    long n = syscall(number, -1L, -1L, -1L, -1L, -1L);

    return n >= 0 || (errno != EPERM && errno != ENOSYS);
}

static int keys(void)
{
    return syscall(SYS_keyctl, 0L, -3L, 1L, 0L, 0L) >= 0;
}

static int families(void)
{
    return socket(40 /* AF_VSOCK */, SOCK_STREAM, 0) >= 0 ||
           socket(38 /* AF_ALG */, SOCK_SEQPACKET, 0) >= 0;
}

/* The memory of whatever else runs in the cell, which may be under no filter. */
static int others_memory(void)
{
    char path[300];
    DIR *all = opendir("/proc");
    int found = 0;

    for (struct dirent *e; all != NULL && (e = readdir(all)) != NULL;) {
        int pid = atoi(e->d_name);
        if (pid == 0 || pid == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/%d/status", pid);
        FILE *status = fopen(path, "r");
        char line[256];
        while (status != NULL && fgets(line, sizeof line, status) != NULL)
            found += strcmp(line, "Seccomp:\t0\n") == 0;
        if (status != NULL)
            fclose(status);
    }
    return found;
}

static int ring(void)
{
    return asked(SYS_io_uring_setup);
}

static int calls_of_the_kernel(void)
{
    const long numbers[] = {
        SYS_bpf,       SYS_perf_event_open, SYS_userfaultfd,      SYS_move_mount,
        SYS_open_tree, SYS_add_key,         SYS_process_vm_writev};

    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (asked(numbers[i]))
            return 1;
    return mount("none", "/tmp", "tmpfs", 0, NULL) == 0;
}

static void attempts(void)
{
    const char *places[] = {"/tmp", "/dev", "/dev/shm", "/", "/proc", "/etc"};
    static const struct {
        const char *what;
        int (*act)(void);
    } acts[] = {{"unshare", new_user},
                {"clone", cloned_user},
                {"clone3", clone3_user},
                {"clone without a tracer", unseen_child},
                {"clone beside", sibling},
                {"setns", own_namespace},
                {"ptrace", traced},
                {"shmget", shared_memory},
                {"memfd_create", file_in_memory},
                {"keyctl", keys},
                {"AF_VSOCK", families},
                {"write to the memory of others", others_memory},
                {"io_uring", ring},
                {"calls of the kernel", calls_of_the_kernel}};

    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        attempt(places[i], fill(places[i]) || many_names(places[i]));
    }
    for (unsigned i = 0; i < sizeof acts / sizeof *acts; i++)
        attempt(acts[i].what, in_a_child(acts[i].act));
    exit(EXIT_FAILURE);
}

/* What a terminal would obey: a title, another colour, a line that hides the one before. */
static void codes_of_a_terminal(void)
{
    fputs("\033]0;lab_was_here\007\033[31m\033[1A\233K\rstatus: passed\n", stderr);
    fputs("\033]0;lab_was_here\007\n", stdout);
    fflush(stdout);
    exit(EXIT_FAILURE);
}

/* Before main(), as a shared library would. */
__attribute__((constructor)) static void begin(void)
{
    if (WHAT == vandal)
        write_outside();
}

int main(int argc, char **argv)
{
    count = argc;
    words = argv;
    WHAT();
    return 0;
}
