/*
 * museum: a disk of 2006, to be mounted.
 *
 * Shows: what a server does when reading a file takes as long as it took then. The files are made
 * up (files.h), the time is the model's (model.h), and what reads them is whatever the server uses.
 * Needs: Linux, /dev/fuse; root, or fusermount3.
 * Run:   museum /mnt files=100000x102400 &  cat /mnt/files/000/000000 | wc -c
 *
 * How it gets out of its own way. Found with libfuse 3.14 and a kernel's 128 KiB of read-ahead:
 * - One thread reads requests and answers at once what costs nothing; spindles.c answers the rest.
 *   A loop with a thread for each request would stop at ten.
 * - max_background: at the default 12, the thirteenth read that nobody waits for (read-ahead,
 *   io_submit()) blocks who asks for it.
 * - No automatic invalidation, and attributes that stay valid: else each read() asks for the
 *   attributes first, and sendfile() does not.
 * - No direct_io: it forbids mmap(). Pages are dropped when a file is opened instead, unless the
 *   kernel's cache is to decide (--keep). So with --cache a page that is read again without an
 *   open() comes from the kernel, and the cache here does not see it.
 * - max_read 128 KiB, whatever the kernel would do: it is what READ brings of a cached file anyway.
 */
#define FUSE_USE_VERSION 314

#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache.h"
#include "die.h"
#include "guardian.h"
#include "options.h"
#include "spindles.h"

#define MAX_READ    (128 * 1024)
#define PARALLEL    512
#define FOREVER_S   (365 * 86400.0)
#define MAX_EXTENTS (MAX_READ / 4096 + 1) /* the smallest fragment, and one more: none is aligned */

/* A FUSE request that waits for the disk. */
struct waiting {
    struct job job;
    fuse_req_t req;
    struct node node;
    bool is_lookup, is_readdir;
    uint64_t offset;
    size_t size;
    struct request requests[MAX_EXTENTS];
};

/* What .statistics said when it was opened; in a list, as the kernel need not tell of each close. */
struct snapshot {
    char *text;
    struct snapshot *next, **link;
};

/* One disk a process; libfuse hands a pointer to each function anyway, but done() has none. */
static struct museum {
    struct options options;
    struct spindles spindles;
    struct cache cache; /* under spindles.lock */
    struct snapshot *snapshots;
} museum;

/* ---- answers ---- */

static struct stat attributes(const struct node *node)
{
    struct stat st = {.st_ino = node->inode, .st_uid = getuid(), .st_gid = getgid()};
    st.st_mode = node_is_directory(node) ? S_IFDIR | 0555 : S_IFREG | 0444;
    st.st_nlink = node_is_directory(node) ? 2 : 1;
    st.st_size = (off_t)node_size(node);
    st.st_blocks = (st.st_size + 511) / 512;
    st.st_blksize = 4096;
    st.st_atim.tv_sec = st.st_mtim.tv_sec = st.st_ctim.tv_sec = FILES_MTIME;
    return st;
}

/* Of a name that is not there the kernel remembers that, too: inode 0. */
static void answer_lookup(fuse_req_t req, const struct node *node)
{
    struct fuse_entry_param entry = {.attr_timeout = FOREVER_S, .entry_timeout = FOREVER_S};
    if (node->kind != NODE_NONE) {
        entry.ino = node->inode;
        entry.generation = 1;
        entry.attr = attributes(node);
    }
    fuse_reply_entry(req, &entry);
}

static size_t add_entry(fuse_req_t req, char *at, size_t room, const char *name,
                        const struct node *node, uint64_t next)
{
    struct stat st = attributes(node);
    return fuse_add_direntry(req, at, room, name, &st, (off_t)next);
}

static void answer_readdir(fuse_req_t req, const struct node *node, uint64_t offset, size_t size)
{
    char name[MAX_POOL_NAME + 1];
    char *list = malloc(size);
    size_t used = 0;
    if (!list) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    for (;; offset++) {
        /* Who is above is the kernel's to know; what stands here as ".." it does not use. */
        struct node entry =
            offset < 2 ? *node : node_entry(&museum.options.files, node, offset - 2, name);
        if (entry.kind == NODE_NONE)
            break;
        const char *shown = offset == 0 ? "." : offset == 1 ? ".." : name;
        size_t needed = add_entry(req, list + used, size - used, shown, &entry, offset + 1);
        if (needed > size - used)
            break;
        used += needed;
    }
    fuse_reply_buf(req, list, used);
    free(list);
}

static void answer_read(fuse_req_t req, const struct node *node, uint64_t offset, size_t size)
{
    static _Thread_local char content[MAX_READ];
    file_content(&museum.options.files, node, offset, content, size);
    fuse_reply_buf(req, content, size);
}

static void answer(struct job *job)
{
    struct waiting *w = (struct waiting *)(void *)((char *)job - offsetof(struct waiting, job));
    if (w->is_lookup)
        answer_lookup(w->req, &w->node);
    else if (w->is_readdir)
        answer_readdir(w->req, &w->node, w->offset, w->size);
    else
        answer_read(w->req, &w->node, w->offset, w->size);
    free(w);
}

/* NULL: no memory, and the request has got its error. */
static struct waiting *new_waiting(fuse_req_t req, const struct node *node)
{
    struct waiting *w = calloc(1, sizeof *w);
    if (!w) {
        fuse_reply_err(req, ENOMEM);
        return NULL;
    }
    w->req = req;
    w->node = *node;
    w->job.requests = w->requests;
    return w;
}

static void ask(struct waiting *w, uint64_t start, uint64_t length)
{
    w->requests[w->job.count++] = (struct request){.start = start, .length = length};
}

/* ---- requests of the kernel ---- */

static void count(uint64_t *counter, uint64_t n)
{
    pthread_mutex_lock(&museum.spindles.lock);
    *counter += n;
    pthread_mutex_unlock(&museum.spindles.lock);
}

static void want(struct fuse_conn_info *conn, unsigned flag, bool wanted)
{
    conn->want = wanted ? conn->want | (flag & conn->capable) : conn->want & ~flag;
}

static void on_init(void *unused, struct fuse_conn_info *conn)
{
    (void)unused;
    want(conn, FUSE_CAP_AUTO_INVAL_DATA, false);
    want(conn, FUSE_CAP_READDIRPLUS, false);
    want(conn, FUSE_CAP_ASYNC_READ, true);
    want(conn, FUSE_CAP_ASYNC_DIO, true);
    want(conn, FUSE_CAP_PARALLEL_DIROPS, true);
    conn->max_background = PARALLEL;
    conn->congestion_threshold = PARALLEL;
    conn->max_read = MAX_READ;
    conn->time_gran = 1000000000;
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct node folder = node_of(&museum.options.files, parent);
    struct node node = node_lookup(&museum.options.files, &folder, name);
    bool ours = node.kind == NODE_STATISTICS || node.kind == NODE_PHASE;

    count(&museum.spindles.asked.lookups, 1);
    if (!museum.options.cold_metadata || ours) {
        answer_lookup(req, &node);
        return;
    }
    struct waiting *w = new_waiting(req, &node);
    if (!w)
        return;
    w->is_lookup = true;
    ask(w, inode_place(&museum.options.files, node.kind == NODE_NONE ? parent : node.inode),
        INODE_BYTES);
    spindles_submit(&museum.spindles, &w->job);
}

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct node node = node_of(&museum.options.files, ino);
    (void)fi;
    count(&museum.spindles.asked.getattrs, 1);
    if (node.kind == NODE_NONE) {
        fuse_reply_err(req, ENOENT);
        return;
    }
    struct stat st = attributes(&node);
    fuse_reply_attr(req, &st, FOREVER_S);
}

/* What the disk has done until now, as text; the next phase begins if so wanted. */
static char *report_now(bool reset)
{
    struct museum *m = &museum;
    pthread_mutex_lock(&m->spindles.lock);
    struct report report = spindles_report(&m->spindles, reset);
    report.cache_hits = m->cache.hits;
    report.cache_misses = m->cache.misses;
    if (reset)
        m->cache.hits = m->cache.misses = 0;
    char *text = report_text(&report);
    pthread_mutex_unlock(&m->spindles.lock);
    return text;
}

static struct snapshot *new_snapshot(bool reset)
{
    struct snapshot *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    s->text = report_now(reset);
    if (!s->text) {
        free(s);
        return NULL;
    }
    s->next = museum.snapshots;
    s->link = &museum.snapshots;
    if (s->next)
        s->next->link = &s->next;
    museum.snapshots = s;
    return s;
}

static void free_snapshot(struct snapshot *s)
{
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    free(s->text);
    free(s);
}

static void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct node node = node_of(&museum.options.files, ino);
    struct snapshot *snapshot = NULL;
    if ((fi->flags & O_ACCMODE) != O_RDONLY) {
        fuse_reply_err(req, EROFS);
        return;
    }
    fi->noflush = 1;
    if (node.kind == NODE_FILE) {
        count(&museum.spindles.asked.opens, 1);
        fi->keep_cache = museum.options.keep;
    } else {
        snapshot = new_snapshot(node.kind == NODE_PHASE);
        if (!snapshot) {
            fuse_reply_err(req, ENOMEM);
            return;
        }
        fi->fh = (uint64_t)(uintptr_t)snapshot;
        fi->direct_io = 1; /* its size is not known before */
    }
    if (fuse_reply_open(req, fi) != 0 && snapshot)
        free_snapshot(snapshot); /* who wanted it has gone: nobody will close it */
}

static void on_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    if (fi->fh)
        free_snapshot((struct snapshot *)(uintptr_t)fi->fh);
    fuse_reply_err(req, 0);
}

/* What of these bytes the cache has not, as requests. */
static void ask_for(struct waiting *w)
{
    struct museum *m = &museum;
    uint64_t from = w->offset, to = from + w->size;
    pthread_mutex_lock(&m->spindles.lock);
    m->spindles.asked.reads++;
    m->spindles.asked.bytes += w->size;
    bool missing = cache_read(&m->cache, w->node.inode, &from, &to);
    pthread_mutex_unlock(&m->spindles.lock);
    while (missing && from < to) {
        struct extent piece = file_extent(&m->options.files, &w->node, from, to - from);
        ask(w, piece.start, piece.length);
        from += piece.length;
    }
}

static void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    struct node node = node_of(&museum.options.files, ino);
    const char *text = fi->fh ? ((struct snapshot *)(uintptr_t)fi->fh)->text : NULL;
    uint64_t from = (uint64_t)offset, end = text ? strlen(text) : node_size(&node);

    if (size > MAX_READ)
        size = MAX_READ;
    size = from >= end ? 0 : end - from < size ? (size_t)(end - from) : size;
    if (text || size == 0) {
        fuse_reply_buf(req, text ? text + (size ? from : 0) : NULL, size);
        return;
    }
    struct waiting *w = new_waiting(req, &node);
    if (!w)
        return;
    w->offset = from;
    w->size = size;
    ask_for(w);
    if (w->job.count == 0)
        answer(&w->job);
    else
        spindles_submit(&museum.spindles, &w->job);
}

static void on_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                       struct fuse_file_info *fi)
{
    struct node node = node_of(&museum.options.files, ino);
    (void)fi;
    if (!museum.options.cold_metadata) {
        answer_readdir(req, &node, (uint64_t)offset, size);
        return;
    }
    struct waiting *w = new_waiting(req, &node);
    if (!w)
        return;
    w->is_readdir = true;
    w->offset = (uint64_t)offset;
    w->size = size;
    ask(w, inode_place(&museum.options.files, ino), INODE_BYTES);
    spindles_submit(&museum.spindles, &w->job);
}

static void on_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct statvfs st = {.f_bsize = 4096, .f_frsize = 4096, .f_namemax = MAX_POOL_NAME};
    (void)ino;
    st.f_blocks = museum.options.geometry.capacity / 4096;
    st.f_files = museum.options.files.total;
    fuse_reply_statfs(req, &st);
}

static const struct fuse_lowlevel_ops operations = {
    .init = on_init,
    .lookup = on_lookup,
    .getattr = on_getattr,
    .open = on_open,
    .read = on_read,
    .release = on_release,
    .readdir = on_readdir,
    .statfs = on_statfs,
};

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
    struct fuse_session *session = fuse_session_new(&args, &operations, sizeof operations, NULL);
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
    if (read(signals, &info, sizeof info) != (ssize_t)sizeof info)
        return true;
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
    signal(SIGPIPE, SIG_IGN); /* who read our first line may be gone */
    if (sigprocmask(SIG_BLOCK, &set, NULL) == -1)
        die_errno("sigprocmask");
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd == -1)
        die_errno("signalfd");
    return fd;
}

/*
 * Others on this processor would make the disk late, and it needs little of it. Who may not be
 * served first is served in turn: late_ms tells.
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

    set_program_name(argv[0]);
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
    while (museum.snapshots)
        free_snapshot(museum.snapshots);
    cache_free(&museum.cache);
    free((void *)(uintptr_t)mountpoint);
    return EXIT_SUCCESS;
}
