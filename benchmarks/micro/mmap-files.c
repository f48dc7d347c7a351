/*
 * mmap-files: what does it cost to look at one more small file through a mapping of its own, when
 * a process has mapped many?
 *
 * FILES files of FILE_BYTES are made, FILES_PER_FOLDER in a folder. Then each is opened, mapped and
 * closed, and its first byte looked at; the mappings stay. All are unmapped and the same is done
 * once more: again_* are the times of the second turn. With -c 1 the files' pages are not in memory
 * before the first turn (which tmpfs, where they have no other place, does not mind), and the first
 * look waits for the disk. Folders and inodes stay in memory, so open() does not. With -p 1 mmap()
 * is told to enter the page in the page table at once (MAP_POPULATE), so that nothing is left to do
 * for the first look.
 * Shows: a line for each file, or for every STEPth; `file` others are mapped when it is its turn.
 * Source: manymapbench of the page with the benchmarks: 10 000 files of 150 bytes, 100 in a folder.
 * Needs: vm.max_map_count above FILES, else the run ends with status 1; for tmpfs see own_files.h.
 * Run:   mmap-files -n 1000 here /var/tmp/files | tail
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"
#include "own_files.h"

#define MAX_FILES        100000
#define FILES_PER_FOLDER 100
#define FILE_BYTES       150
#define PATH_SIZE        64
#define TURNS            2

struct times {
    uint64_t open_ns, mmap_ns, touch_ns;
};

struct file {
    struct times turn[TURNS];
    volatile const char *address;
};

static int map_flags = MAP_SHARED;
static int root; /* the folder with the files: paths begin there */

static void path_of(size_t i, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%lu/%lu.html", (unsigned long)(i / FILES_PER_FOLDER),
             (unsigned long)(i % FILES_PER_FOLDER));
}

static void close_file(int fd)
{
    if (close(fd) == -1)
        die_errno("close");
}

#define WRITE_OUT (SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER)
/* Only what lies on the disk can be thrown away; for fsync() the journal would be written too. */
static void forget_pages(int fd)
{
    if (sync_file_range(fd, 0, 0, WRITE_OUT) == -1)
        die_errno("sync_file_range");
    int error = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (error != 0)
        die(EXIT_FAILURE, "posix_fadvise: %s", strerror(error));
}

static void make_files(size_t count)
{
    char path[PATH_SIZE], content[FILE_BYTES];
    memset(content, 'x', sizeof content);
    for (size_t i = 0; i < count; i++) {
        path_of(i, path);
        if (i % FILES_PER_FOLDER == 0) {
            *strchr(path, '/') = '\0';
            if (mkdirat(root, path, 0700) == -1)
                die_errno("mkdir %s", path);
            path_of(i, path);
        }
        int fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd == -1)
            die_errno("create %s", path);
        if (write(fd, content, sizeof content) != (ssize_t)sizeof content)
            die_errno("write %s", path);
        close_file(fd);
    }
}

static void forget_files(size_t count)
{
    char path[PATH_SIZE];
    for (size_t i = 0; i < count; i++) {
        path_of(i, path);
        int fd = openat(root, path, O_RDONLY | O_CLOEXEC);
        if (fd == -1)
            die_errno("open %s", path);
        forget_pages(fd);
        close_file(fd);
    }
}

/* False, with errno, if the kernel refused a mapping. */
static bool look_at(struct file *file, struct times *times, const char *path)
{
    uint64_t start = now_ns();
    int fd = openat(root, path, O_RDONLY | O_CLOEXEC);
    uint64_t opened = now_ns();
    if (fd == -1)
        die_errno("open %s", path);
    void *address = mmap(NULL, FILE_BYTES, PROT_READ, map_flags, fd, 0);
    uint64_t mapped = now_ns();
    int mmap_errno = errno;
    close_file(fd);
    errno = mmap_errno;
    if (address == MAP_FAILED)
        return false;
    file->address = address;
    uint64_t looking = now_ns();
    (void)*file->address;
    times->touch_ns = now_ns() - looking;
    times->open_ns = opened - start;
    times->mmap_ns = mapped - opened;
    return true;
}

/* Returns how many it mapped: less than count, with errno, if one was refused. */
static size_t map_files(struct file *file, size_t count, int turn)
{
    char path[PATH_SIZE];
    for (size_t i = 0; i < count; i++) {
        path_of(i, path);
        if (!look_at(&file[i], &file[i].turn[turn], path))
            return i;
    }
    return count;
}

static void unmap_files(struct file *file, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (munmap((void *)file[i].address, FILE_BYTES) == -1)
            die_errno("munmap");
}

static void print_samples(const struct file *file, size_t count, size_t step)
{
    puts("file\topen_ns\tmmap_ns\ttouch_ns\tagain_open_ns\tagain_mmap_ns\tagain_touch_ns");
    for (size_t i = 0; i < count; i += step) {
        const struct times *first = &file[i].turn[0], *again = &file[i].turn[1];
        printf("%lu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\n", (unsigned long)i,
               (unsigned long long)first->open_ns, (unsigned long long)first->mmap_ns,
               (unsigned long long)first->touch_ns, (unsigned long long)again->open_ns,
               (unsigned long long)again->mmap_ns, (unsigned long long)again->touch_ns);
    }
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "FILES", 1, MAX_FILES, 10000, 0},
        {'k', "STEP", 1, MAX_FILES, 1, 0},
        {'c', "COLD", 0, 1, 0, 0},
        {'p', "POPULATE", 0, 1, 0, 0},
    };
    const struct command_line line = {options, 4, OWN_FILES " NEW_FOLDER", 2, 2};
    char **words = read_command_line(argc, argv, &line);
    size_t count = options[0].value, mapped = count;
    if (!files_known(words[0]))
        refuse(&line);
    if (options[3].value == 1)
        map_flags |= MAP_POPULATE;
    struct file *file = samples_new(count, sizeof *file);
    files_make(words[0], words[1], count);
    root = open(words[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root == -1)
        die_errno("open %s", words[1]);
    make_files(count);
    if (options[2].value == 1)
        forget_files(count);

    int mmap_errno = 0;
    for (int turn = 0; turn < TURNS && mapped == count; turn++) {
        mapped = map_files(file, count, turn);
        mmap_errno = errno;
        unmap_files(file, mapped);
    }
    close_file(root);
    files_remove();
    if (mapped < count)
        die(EXIT_FAILURE, "mmap: %s after %lu mappings", strerror(mmap_errno),
            (unsigned long)mapped);
    print_samples(file, count, options[1].value);
    free(file);
    return EXIT_SUCCESS;
}
