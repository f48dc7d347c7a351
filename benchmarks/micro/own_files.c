#include "own_files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/loop.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "die.h"

#define DESCRIPTORS     16          /* that nftw() may have open at once */
#define IMAGE_BYTES     (1LL << 30) /* without blocks until they are written */
#define BYTES_PER_FILE  8192
#define INODES_BESIDE   1000 /* folders, and what the file system needs itself */
#define LOOP_ATTEMPTS   16   /* another process may take the device that was free */
#define UNMOUNT_TRIES   50
#define UNMOUNT_WAIT_US 20000
#define SBIN            "/usr/sbin:/sbin:/usr/bin:/bin" /* a user's PATH often lacks the first */

/* The mount that / is on may be shared with everybody; only its top can be asked to end that. */
#define NO_ROOT_MOUNT                                                                              \
    "/ is no mount point, as in a plain chroot (mount --bind DIR DIR before chroot DIR)"

/* A file system that only this process sees. */
struct own_mount {
    const char *type; /* "tmpfs", or what mkfs.TYPE makes and mount(2) knows */
    const char *path; /* the folder it covers */
    size_t files;     /* that it has to have room for */
    int image;        /* the file it is in, or -1 */
};

static void write_to(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd == -1)
        die_errno("open %s", path);
    if (write(fd, text, strlen(text)) == -1)
        die_errno("write %s", path);
    close(fd);
}

/* Mounts of this process, and none of anybody else's, from here on. */
static void own_namespace(bool root)
{
    char map[64];
    unsigned long user = geteuid(), group = getegid();
    if (unshare(CLONE_NEWNS | (root ? 0 : CLONE_NEWUSER)) == -1)
        die(EXIT_UNSUPPORTED, "no mount namespace: %s", strerror(errno));
    if (!root) {
        /* Who has no name in the namespace can make no file there. */
        snprintf(map, sizeof map, "%lu %lu 1", user, user);
        write_to("/proc/self/uid_map", map);
        write_to("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "%lu %lu 1", group, group);
        write_to("/proc/self/gid_map", map);
    }
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
        die(EXIT_UNSUPPORTED, "no mounts of our own: %s",
            errno == EINVAL ? NO_ROOT_MOUNT : strerror(errno));
}

static char image_path[4096]; /* while the image has a name */

/* A new sparse file beside the folder, whose name is gone once mkfs has seen it. */
static int image_open(const struct own_mount *own)
{
    char path[sizeof image_path];
    off_t bytes = IMAGE_BYTES + (off_t)own->files * BYTES_PER_FILE;
    if (snprintf(path, sizeof path, "%s.image", own->path) >= (int)sizeof path)
        die(EXIT_FAILURE, "%s: name too long", own->path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd == -1)
        die_errno("open %s", path);
    memcpy(image_path, path, strlen(path) + 1);
    if (ftruncate(fd, bytes) == -1)
        die_errno("ftruncate %s", path);
    return fd;
}

static _Noreturn void become_mkfs(const struct own_mount *own, const char *image)
{
    char program[32], inodes[32];
    bool ext = strncmp(own->type, "ext", 3) == 0;
    int null = open("/dev/null", O_WRONLY);
    snprintf(program, sizeof program, "mkfs.%s", own->type);
    snprintf(inodes, sizeof inodes, "%lu", (unsigned long)own->files + INODES_BESIDE);
    if (null == -1 || dup2(null, STDOUT_FILENO) == -1 || setenv("PATH", SBIN, 1) == -1)
        _exit(EXIT_FAILURE);
    if (strcmp(own->type, "ext2") == 0)
        execlp(program, program, "-q", "-F", "-O", "^dir_index", "-N", inodes, image, (char *)NULL);
    else if (ext)
        execlp(program, program, "-q", "-F", "-N", inodes, image, (char *)NULL);
    else
        execlp(program, program, "-q", image, (char *)NULL);
    _exit(errno == ENOENT ? EXIT_UNSUPPORTED : EXIT_FAILURE);
}

static void make_files_in(const struct own_mount *own, const char *image)
{
    int status;
    signal(SIGCHLD, SIG_DFL); /* were it ignored, nobody could wait for a child */
    pid_t pid = fork();
    if (pid == -1)
        die_errno("fork");
    if (pid == 0)
        become_mkfs(own, image);
    while (waitpid(pid, &status, 0) == -1)
        if (errno != EINTR)
            die_errno("waitpid");
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_UNSUPPORTED)
        die(EXIT_UNSUPPORTED, "mkfs.%s is not installed", own->type);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
        die(EXIT_FAILURE, "mkfs.%s failed", own->type);
}

/* A loop device on the image, that goes back when the file system on it is unmounted. */
static int loop_open(int image, char *name, size_t size)
{
    struct loop_config config = {.fd = (unsigned)image};
    /* No second copy in the page cache of the file system below, which nobody could forget. */
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control == -1)
        die(EXIT_UNSUPPORTED, "no loop devices: %s", strerror(errno));
    for (int attempt = 0; attempt < LOOP_ATTEMPTS; attempt++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);
        if (number == -1)
            die(EXIT_UNSUPPORTED, "no loop device is free: %s", strerror(errno));
        snprintf(name, size, "/dev/loop%d", number);
        int fd = open(name, O_RDWR | O_CLOEXEC);
        if (fd == -1)
            die(EXIT_UNSUPPORTED, "open %s: %s", name, strerror(errno));
        if (ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
            close(control);
            return fd;
        }
        if (errno != EBUSY)
            die(EXIT_UNSUPPORTED, "%s: %s", name, strerror(errno));
        close(fd);
    }
    die(EXIT_FAILURE, "%s: Device or resource busy", name);
}

/* What was written to the image lies on the disk, and no longer in memory. */
static void image_settle(int image)
{
    if (fsync(image) == -1)
        die_errno("fsync of the image");
    int error = posix_fadvise(image, 0, 0, POSIX_FADV_DONTNEED);
    if (error != 0)
        die(EXIT_FAILURE, "posix_fadvise: %s", strerror(error));
}

static void own_mount_again(const struct own_mount *own)
{
    char device[32];
    image_settle(own->image);
    int loop = loop_open(own->image, device, sizeof device);
    /* ext4 would go on writing empty inodes while we measure. */
    const char *options = strcmp(own->type, "ext4") == 0 ? "noinit_itable" : NULL;
    if (mount(device, own->path, own->type, 0, options) == -1)
        die(errno == ENODEV ? EXIT_UNSUPPORTED : EXIT_FAILURE, "mount %s: %s", own->type,
            strerror(errno));
    close(loop);
}

/* Makes the file system and mounts it. Dies with EXIT_UNSUPPORTED where that cannot be had. */
static void own_mount(struct own_mount *own)
{
    bool root = geteuid() == 0, tmpfs = strcmp(own->type, "tmpfs") == 0;
    if (!root && !tmpfs)
        die(EXIT_UNSUPPORTED, "root is needed for %s of our own", own->type);
    own_namespace(root);
    if (tmpfs) {
        if (mount("tmpfs", own->path, "tmpfs", 0, NULL) == -1)
            die(EXIT_UNSUPPORTED, "mount tmpfs: %s", strerror(errno));
        return;
    }
    own->image = image_open(own);
    make_files_in(own, image_path);
    if (unlink(image_path) == -1)
        die_errno("unlink %s", image_path);
    image_path[0] = '\0';
    own_mount_again(own);
}

/*
 * Once it is unmounted, what was in an image can be mounted again. Nothing is cached then. Somebody
 * of the system may be looking at a new mount, for a moment.
 */
static void own_unmount(const struct own_mount *own)
{
    for (int i = 0; umount(own->path) == -1; i++) {
        if (errno != EBUSY || i == UNMOUNT_TRIES)
            die_errno("umount %s", own->path);
        usleep(UNMOUNT_WAIT_US);
    }
}

static struct own_mount mounted; /* path: NULL, once files_remove() has removed it */

static int remove_if_possible(const char *path, const struct stat *status, int what,
                              struct FTW *walk)
{
    (void)status;
    (void)what;
    (void)walk;
    remove(path);
    return 0;
}

/* Where the system lacks something, or a call fails, we end in the middle: nothing of ours may be
 * left then. We have made the folder, so all that is in it is ours. */
static void remove_rest(void)
{
    if (image_path[0] != '\0')
        unlink(image_path);
    if (mounted.path == NULL)
        return;
    if (strcmp(mounted.type, "here") != 0)
        umount2(mounted.path, MNT_DETACH); /* fails where nothing was mounted yet */
    nftw(mounted.path, remove_if_possible, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

static const char *const types[] = {"here", "tmpfs", "ext2", "ext4", "xfs", "btrfs"};

bool files_known(const char *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i], type) == 0)
            return true;
    return false;
}

bool files_forgettable(const char *type)
{
    return strcmp(type, "here") != 0 && strcmp(type, "tmpfs") != 0;
}

void files_make(const char *type, const char *path, size_t count)
{
    if (mkdir(path, 0700) == -1)
        die_errno("mkdir %s", path);
    mounted = (struct own_mount){.type = type, .path = path, .files = count, .image = -1};
    if (atexit(remove_rest) != 0)
        die(EXIT_FAILURE, "atexit: no room");
    if (strcmp(type, "here") != 0)
        own_mount(&mounted);
}

void files_forget(void)
{
    own_unmount(&mounted);
    own_mount_again(&mounted);
}

static int remove_one(const char *path, const struct stat *status, int what, struct FTW *walk)
{
    (void)status;
    (void)what;
    (void)walk;
    if (remove(path) == -1)
        die_errno("remove %s", path);
    return 0;
}

void files_remove(void)
{
    if (strcmp(mounted.type, "here") != 0)
        own_unmount(&mounted);
    if (nftw(mounted.path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS) == -1)
        die_errno("%s", mounted.path);
    mounted.path = NULL;
}
