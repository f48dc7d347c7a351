/*
 * open_below_test: both mechanisms that keep a path below a folder, on a tree made in $TMPDIR.
 *
 * Run: build/asan/open_below_test
 */
#include "open_below.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

typedef int opener(int root, const char *path);

static const struct {
    const char *path;
    int error; /* 0: opens */
    int other; /* allowed too: 0 with `error` set means "or opens" */
} cases[] = {
    {"file", 0, 0},
    {"dir/file", 0, 0},
    {"dir/sub/sub/file", 0, 0},
    {"dir/sub/sub/none", ENOENT, ENOENT},
    {"dir/sub/none/file", ENOENT, ENOENT},
    {"dir//file", 0, 0},
    {"./file", 0, 0},
    {"dir/./file", 0, 0},
    {"dir/", 0, 0},
    {"dir", 0, 0},
    {".", 0, 0},
    {"fifo", 0, 0}, /* without waiting for a writer: what it is, the caller looks at */
    {"none", ENOENT, ENOENT},
    {"dir/none", ENOENT, ENOENT},
    {"none/file", ENOENT, ENOENT},
    {"file/", ENOTDIR, ENOTDIR},
    {"file/x", ENOTDIR, ENOTDIR},
    {"..", EXDEV, EXDEV},
    {"../outside", EXDEV, EXDEV},
    {"dir/..", EXDEV, 0},
    {"dir/../file", EXDEV, 0},
    {"dir/sub/../../../outside", EXDEV, EXDEV},
    {"fifo/x", ENOTDIR, ENOTDIR},
    {"link-dir/../../outside", EXDEV, ELOOP},
    {"link-inside/x", ENOTDIR, ELOOP},
    {"dir/../../outside", EXDEV, EXDEV},
    {"link-outside", EXDEV, ELOOP},
    {"link-absolute", EXDEV, ELOOP},
    {"link-parent/outside", EXDEV, ELOOP},
    {"link-root/etc/passwd", EXDEV, ELOOP},
    {"link-loop", ELOOP, ELOOP},
    {"link-loop/x", ELOOP, ELOOP},
    {"link-none", ENOENT, ELOOP},
    {"link-inside", ELOOP, 0},
    {"link-dir/file", ELOOP, 0},
};

static void need(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(EXIT_FAILURE);
    }
}

static void make_file(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0644);

    need(fd, path);
    close(fd);
}

/* In the working folder: outside, and root/ with all that the cases name. Returns root. */
static int make_tree(void)
{
    need(mkdir("root", 0755), "mkdir root");
    need(mkdir("root/dir", 0755), "mkdir root/dir");
    need(mkdir("root/dir/sub", 0755), "mkdir root/dir/sub");
    need(mkdir("root/dir/sub/sub", 0755), "mkdir root/dir/sub/sub");
    make_file("outside");
    make_file("root/file");
    make_file("root/dir/file");
    make_file("root/dir/sub/sub/file");
    need(mkfifo("root/fifo", 0644), "mkfifo");
    need(symlink("../outside", "root/link-outside"), "symlink");
    need(symlink("/etc/passwd", "root/link-absolute"), "symlink");
    need(symlink("..", "root/link-parent"), "symlink");
    need(symlink("/", "root/link-root"), "symlink");
    need(symlink("link-loop", "root/link-loop"), "symlink");
    need(symlink("nothing", "root/link-none"), "symlink");
    need(symlink("file", "root/link-inside"), "symlink");
    need(symlink("dir", "root/link-dir"), "symlink");
    int root = open("root", O_RDONLY | O_DIRECTORY);
    need(root, "open root");
    return root;
}

static void remove_tree(const char *top)
{
    static const char *const names[] = {
        "root/link-outside", "root/link-absolute", "root/link-parent", "root/link-root",
        "root/link-loop",    "root/link-none",     "root/link-inside", "root/link-dir",
        "root/fifo",         "root/dir/file",      "root/file",        "outside",
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        need(unlink(names[i]), names[i]);
    need(unlink("root/dir/sub/sub/file"), "unlink");
    need(rmdir("root/dir/sub/sub"), "rmdir root/dir/sub/sub");
    need(rmdir("root/dir/sub"), "rmdir root/dir/sub");
    need(rmdir("root/dir"), "rmdir root/dir");
    need(rmdir("root"), "rmdir root");
    need(chdir("/"), "chdir /");
    need(rmdir(top), top);
}

/* The lowest free descriptor: the same before and after, or something was left open. */
static int lowest_free(void)
{
    int fd = dup(0);

    need(fd, "dup");
    close(fd);
    return fd;
}

static void check(const char *name, opener *open_one, int root)
{
    int before = lowest_free();

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = open_one(root, cases[i].path);
        int error = fd < 0 ? errno : 0;
        tap_ok(error == cases[i].error || error == cases[i].other, "%s(\"%s\"): %s, expected %s",
               name, cases[i].path, strerror(error), strerror(cases[i].error));
        if (fd < 0)
            continue;
        tap_ok((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0, "%s(\"%s\") is O_NONBLOCK", name,
               cases[i].path);
        tap_ok((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, "%s(\"%s\") is FD_CLOEXEC", name,
               cases[i].path);
        close(fd);
    }
    tap_ok(lowest_free() == before, "%s: descriptor %d is left open", name, before);
}

/* ---- a kernel of our making: it fails so many times, and then has found 1000 */

#if defined(__linux__) && !defined(__dietlibc__)
static int failures, failure;

static long fake_syscall(const void *how)
{
    errno = failure;
    return how != NULL && failures-- > 0 ? -1 : 1000;
}

int open_below_faked(int root, const char *path);

#define open_below                             open_below_faked
#define syscall(number, root, path, how, size) fake_syscall(how)
#include "../../code/common/open_below_openat2.c"
#undef open_below
#undef syscall

static void check_kernels(int root)
{
    static const struct {
        int failure, times, fd, error;
    } kernels[] = {
        {EAGAIN, 7, 1000, 0},    {EAGAIN, 8, -1, EAGAIN}, {EINTR, 1, 1000, 0},
        {ENOSYS, 1, -1, ELOOP},  {EPERM, 1, -1, ELOOP},   {EACCES, 1, -1, EACCES},
        {ENOENT, 1, -1, ENOENT},
    };

    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        failures = kernels[i].times;
        failure = kernels[i].failure;
        int fd = open_below_faked(root, "link-inside"); /* over which the walk does not go */
        tap_ok(fd == kernels[i].fd && (fd >= 0 || errno == kernels[i].error),
               "openat2 fails %d times with %s: %d, %s", kernels[i].times,
               strerror(kernels[i].failure), fd, strerror(errno));
    }
}
#else
static void check_kernels(int root)
{
    (void)root;
}
#endif

/* A path longer than the system takes is refused, whatever buffer it is copied to. */
static void check_long(const char *name, opener *open_one, int root)
{
    static char path[20000];

    for (size_t len = 4090; len < 4110; len++) {
        memset(path, 'p', len);
        path[len] = '\0';
        tap_ok(open_one(root, path) < 0 && errno == ENAMETOOLONG, "%s: a name of %zu bytes: %s",
               name, len, strerror(errno));
    }
    for (size_t i = 0; i + 2 < sizeof path; i += 2)
        memcpy(path + i, "./", 3);
    tap_ok(open_one(root, path) < 0 && errno == ENAMETOOLONG, "%s: a path of %zu bytes: %s", name,
           strlen(path), strerror(errno));
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    char top[1024];

    snprintf(top, sizeof top, "%s/open_below.XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(top) == NULL || chdir(top) < 0) {
        perror(top);
        return EXIT_FAILURE;
    }
    int root = make_tree();
    check("open_below", open_below, root);
    check("open_below_walk", open_below_walk, root);
    check_kernels(root);
    check_long("open_below", open_below, root);
    check_long("open_below_walk", open_below_walk, root);
    close(root);
    remove_tree(top);
    return tap_done();
}
