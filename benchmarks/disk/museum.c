/*
 * museum: a disk of 2006, to be mounted.
 *
 * Shows: what a server does when reading a file takes as long as it took then. The files are made
 * up (files.h), the time is the model's (model.h), and what reads them is whatever the server uses.
 * One thread reads requests and answers those that cost nothing (requests.c); a thread for each
 * spindle answers the rest (spindles.c). libfuse's own loop of threads would stop at ten requests.
 * Needs: Linux, /dev/fuse; root, or fusermount3.
 * Run:   museum /mnt files=100000x102400 &  cat /mnt/files/000/000000 | wc -c
 */
#define FUSE_USE_VERSION 314

#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "die.h"
#include "known_state.h"
#include "guardian.h"
#include "requests.h"

/* ---- mounting ---- */

/* libfuse's last complaint, for our one line. */
static char complaint[256];

static void note_complaint(enum fuse_log_level level, const char *format, va_list args)
{
    if (level > FUSE_LOG_ERR)
        return;
    vsnprintf(complaint, sizeof complaint, format, args);
    complaint[strcspn(complaint, "\n")] = '\0';
}

static const char *absolute_mountpoint(const char *mountpoint)
{
    struct stat st;
    char *path = realpath(mountpoint, NULL);
    if (!path && errno == ENOTCONN)
        die(EXIT_FAILURE, "%s: left over from a file system that ended; fusermount3 -u unmounts it",
            mountpoint);
    if (!path || stat(path, &st) == -1)
        die_errno("%s", mountpoint);
    if (!S_ISDIR(st.st_mode))
        die(EXIT_FAILURE, "%s: not a directory", mountpoint);
    return path;
}

/* Whether there is a chance; what else is missing the mount itself will tell. */
static void check_fuse(void)
{
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fd == -1)
        die(EXIT_UNSUPPORTED, "/dev/fuse: %s (%s)", strerror(errno),
            errno == EACCES ? "run it as root, or chmod 666 /dev/fuse"
                            : "modprobe fuse; a container needs --device /dev/fuse");
    close(fd);
}

static struct fuse_session *mount_it(const char *mountpoint)
{
    char options[128];
    bool others = museum.options.allow_other || geteuid() == 0;
    snprintf(options, sizeof options,
             "ro,nosuid,nodev,fsname=museum,default_permissions,max_read=%d%s", MAX_READ,
             others ? ",allow_other" : "");
    char *words[] = {"museum", "-o", options, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, words);

    fuse_set_log_func(note_complaint);
    struct fuse_session *session = fuse_session_new(&args, &requests, sizeof requests, NULL);
    fuse_opt_free_args(&args);
    if (!session)
        die(EXIT_FAILURE, "libfuse: %s", complaint);
    if (fuse_session_mount(session, mountpoint) != 0)
        die(EXIT_UNSUPPORTED,
            "cannot be mounted: %s (as root in a container: --cap-add SYS_ADMIN; "
            "as a user: apt-get install fuse3)",
            *complaint ? complaint : "fusermount3 refused");
    return session;
}

/* ---- the loop ---- */

static void print_report(void)
{
    char *text = report_now(false);
    if (!text || fputs(text, stdout) == EOF || fflush(stdout) == EOF)
        warn_errno("statistics");
    free(text);
}

/* False: the signal asks us to end. */
static bool obey_signal(int signals)
{
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof info) != (ssize_t)sizeof info) {
        if (errno != EINTR && errno != EAGAIN) /* it would be readable for ever */
            die_errno("read signalfd");
        return true;
    }
    if (info.ssi_signo == SIGUSR1)
        print_report();
    else if (info.ssi_signo == SIGUSR2)
        free(report_now(true));
    else
        return false;
    return true;
}

/*
 * Blocked signals that a descriptor tells of: one that comes just before a blocking read() would
 * otherwise be noticed only after the next request.
 */
static void serve_loop(struct fuse_session *session, int signals)
{
    struct fuse_buf buf = {.mem = NULL};
    struct pollfd fds[] = {{.fd = fuse_session_fd(session), .events = POLLIN},
                           {.fd = signals, .events = POLLIN}};
    for (;;) {
        if (poll(fds, 2, -1) == -1 && errno != EINTR)
            die_errno("poll");
        if (fds[1].revents != 0 && !obey_signal(signals))
            break;
        if (fds[0].revents == 0)
            continue;
        int got = fuse_session_receive_buf(session, &buf);
        if (got == -EINTR || got == -EAGAIN)
            continue;
        if (got <= 0) /* somebody else has unmounted it */
            break;
        fuse_session_process_buf(session, &buf);
    }
    free(buf.mem);
}

static int block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    const int ours[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        sigaddset(&set, ours[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL) == -1)
        die_errno("sigprocmask");
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd == -1)
        die_errno("signalfd");
    return fd;
}

/*
 * The disk needs little of its processor, and whatever else runs there would make it late: so it
 * goes first. Where we may not ask for that it waits its turn; late_ms in the statistics tells.
 */
static void be_prompt(void)
{
    const struct sched_param least = {.sched_priority = sched_get_priority_min(SCHED_RR)};
    (void)!sched_setscheduler(0, SCHED_RR, &least);
}

static void serve(const char *mountpoint, int signals)
{
    struct museum *m = &museum;
    struct guardian guardian;
    if (!guardian_start(&guardian, mountpoint))
        die_errno("fork");
    struct fuse_session *session = mount_it(mountpoint);
    int flags = fcntl(fuse_session_fd(session), F_GETFL);
    /* poll() can tell of a request that is withdrawn before we read it. */
    if (flags == -1 || fcntl(fuse_session_fd(session), F_SETFL, flags | O_NONBLOCK) == -1)
        die_errno("fcntl");
    be_prompt();
    if (!spindles_start(&m->spindles, &m->options.geometry, m->options.speed, answer))
        die_errno("threads");
    printf("museum: mounted on %s, %llu files\n", mountpoint,
           (unsigned long long)m->options.files.total);
    if (fflush(stdout) == EOF)
        die_errno("write to stdout");
    serve_loop(session, signals);
    print_report();
    spindles_stop(&m->spindles);
    fuse_session_unmount(session);
    guardian_dismiss(&guardian);
    fuse_session_destroy(session);
}

static int list_files(const struct files *files)
{
    char path[FILE_PATH_SIZE];
    for (uint64_t i = 0; i < files->total; i++) {
        struct node file = file_of(files, i);
        file_path(files, &file, path);
        puts(path);
    }
    if (fflush(stdout) == EOF || ferror(stdout))
        die_errno("write to stdout");
    return EXIT_SUCCESS;
}

int main(int argc, char *argv[])
{
    struct options *o = &museum.options;
    char message[256];

    known_state(argv[0], NULL);
    switch (options_parse(o, false, argc, argv, message, sizeof message)) {
    case OPTIONS_HELP:
        options_usage(stdout, false);
        return EXIT_SUCCESS;
    case OPTIONS_BAD:
        if (*message)
            die(EXIT_USAGE, "%s", message);
        return EXIT_USAGE;
    case OPTIONS_RUN:
        break;
    }
    if (o->list)
        return list_files(&o->files);
    const char *mountpoint = absolute_mountpoint(o->mountpoint);
    check_fuse();
    if (!cache_init(&museum.cache, (uint64_t)(o->cache_mib * 1024 * 1024)))
        die_errno("memory");
    serve(mountpoint, block_signals());
    forget_snapshots();
    cache_free(&museum.cache);
    free((void *)(uintptr_t)mountpoint);
    return EXIT_SUCCESS;
}
