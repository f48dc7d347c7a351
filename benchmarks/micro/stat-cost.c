/*
 * stat-cost: what does it cost to find a small file and to read it, before a byte of it is sent?
 *
 * FILES files of BYTES are made, FILES_PER_FOLDER in a folder and each of them DEPTH names
 * below NEW_FOLDER. Then VISITS of them are visited, once each, in an order that has nothing to do
 * with that in which they were made. The way is one of
 *   stat   stat() of the path
 *   statx  statx() of it
 *   open   open(), fstat(), close()
 *   below  the same with open_below() of our servers in place of open()
 *   read   open(), fstat(), read() of the whole file, close()
 *   serve  as a server of 2006: stat(), open(), read(), close(), each with a time of its own
 * and what is in memory beforehand is said by
 *   warm    everything: all files have been visited before
 *   cold    nothing: the file system has been mounted anew
 *   listed  nothing but what it takes to list the names in all folders, as find(1) does
 *   walked  nothing but what it takes to stat() all files, as find(1) does with -size
 * Shows: a line for each visit; call_ns is the time of all calls together.
 * Needs: root for all but warm, and for a file system that has to be mounted (own_files.h).
 * Run:   stat-cost -d 4 serve here warm /var/tmp/files | tail
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"
#include "open_below.h"
#include "own_files.h"

#define MAX_FILES        100000
#define MAX_DEPTH        32
#define FILES_PER_FOLDER 10
#define FEW_BYTES        3000 /* those of the benchmark of 2007 with a million files */
#define MOST_BYTES       102400
#define ROOM_BYTES       4096 /* a file system has room for as many more where files are larger */
#define PATH_SIZE        128

struct sample {
    char path[PATH_SIZE];
    uint64_t stat_ns, open_ns, read_ns, close_ns, call_ns; /* 0: not done in this way */
};

static int root;          /* the folder with the files: paths begin there */
static size_t file_bytes; /* of each */

static uint64_t mark(uint64_t *since)
{
    uint64_t now = now_ns(), took = now - *since;
    *since = now;
    return took;
}

static void visit_stat(struct sample *s)
{
    struct stat status;
    if (fstatat(root, s->path, &status, 0) == -1)
        die_errno("stat %s", s->path);
}

static void visit_statx(struct sample *s)
{
    struct statx status;
    if (statx(root, s->path, 0, STATX_BASIC_STATS, &status) == -1)
        die_errno("statx %s", s->path);
}

static void check_size(int fd)
{
    struct stat status;
    if (fstat(fd, &status) == -1)
        die_errno("fstat");
    if (status.st_size != (off_t)file_bytes)
        die(EXIT_FAILURE, "a file has changed its size");
}

static int open_plain(const char *path)
{
    int fd = openat(root, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd == -1)
        die_errno("open %s", path);
    return fd;
}

static void close_file(int fd)
{
    if (close(fd) == -1)
        die_errno("close");
}

static void read_file(int fd)
{
    static char buffer[MOST_BYTES];
    ssize_t n = read(fd, buffer, file_bytes);
    if (n == -1)
        die_errno("read");
    if ((size_t)n != file_bytes)
        die(EXIT_FAILURE, "read: %ld bytes of %lu", (long)n, (unsigned long)file_bytes);
}

static void visit_open(struct sample *s)
{
    int fd = open_plain(s->path);
    check_size(fd);
    close_file(fd);
}

static void visit_below(struct sample *s)
{
    int fd = open_below(root, s->path);
    if (fd == -1)
        die_errno("open_below %s", s->path);
    check_size(fd);
    close_file(fd);
}

static void visit_read(struct sample *s)
{
    int fd = open_plain(s->path);
    check_size(fd);
    read_file(fd);
    close_file(fd);
}

static void visit_serve(struct sample *s)
{
    uint64_t since = now_ns();
    visit_stat(s);
    s->stat_ns = mark(&since);
    int fd = open_plain(s->path);
    s->open_ns = mark(&since);
    read_file(fd);
    s->read_ns = mark(&since);
    close_file(fd);
    s->close_ns = mark(&since);
}

#define WAYS "stat|statx|open|below|read|serve"
static const struct way {
    const char *name;
    void (*visit)(struct sample *);
} ways[] = {
    {"stat", visit_stat},   {"statx", visit_statx}, {"open", visit_open},
    {"below", visit_below}, {"read", visit_read},   {"serve", visit_serve},
};

static const struct way *way_named(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

static void open_root(const char *folder)
{
    root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root == -1)
        die_errno("open %s", folder);
}

/* Folders as far as they are not there yet, and the file at their end. */
static void make_file(const char *path)
{
    static const char content[MOST_BYTES];
    char part[PATH_SIZE];
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        memcpy(part, path, (size_t)(slash - path));
        part[slash - path] = '\0';
        if (faccessat(root, part, F_OK, 0) == -1 && mkdirat(root, part, 0700) == -1)
            die_errno("mkdir %s", part);
    }
    int fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd == -1)
        die_errno("create %s", path);
    if (write(fd, content, file_bytes) != (ssize_t)file_bytes)
        die_errno("write %s", path);
    close_file(fd);
}

static void make_files(struct sample *sample, size_t count, size_t depth)
{
    for (size_t i = 0; i < count; i++) {
        char *at = sample[i].path, *end = at + PATH_SIZE;
        if (depth > 1)
            at += snprintf(at, PATH_SIZE, "d%lu/", (unsigned long)(i / FILES_PER_FOLDER));
        for (size_t level = 2; level < depth; level++)
            at += snprintf(at, (size_t)(end - at), "x/");
        snprintf(at, (size_t)(end - at), "f%lu", (unsigned long)i);
        make_file(sample[i].path);
    }
}

/* The same order in every run, and not the one in which they were made. */
static void shuffle(struct sample *sample, size_t count)
{
    uint32_t random = 2463534242U; /* xorshift, Marsaglia 2003 */
    for (size_t i = count; i > 1; i--) {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        struct sample other = sample[i - 1];
        sample[i - 1] = sample[random % i];
        sample[random % i] = other;
    }
}

/* Reads all names below a folder, and no inode but those of folders. Closes fd. */
static void list_names(int fd)
{
    DIR *folder = fdopendir(fd);
    const struct dirent *entry;
    if (folder == NULL)
        die_errno("opendir");
    while ((entry = readdir(folder)) != NULL) {
        /* Our names tell what they are, and not every file system does. */
        if (*entry->d_name != 'd' && *entry->d_name != 'x')
            continue;
        int below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (below == -1)
            die_errno("open %s", entry->d_name);
        list_names(below);
    }
    if (closedir(folder) == -1)
        die_errno("closedir");
}

static void prepare(const char *state, const char *folder, struct sample *sample, size_t count,
                    size_t visits)
{
    if (strcmp(state, "warm") == 0) {
        for (size_t i = 0; i < visits; i++)
            visit_read(&sample[i]);
        return;
    }
    close_file(root);
    files_forget();
    open_root(folder);
    if (strcmp(state, "listed") == 0)
        list_names(open_plain("."));
    if (strcmp(state, "walked") == 0)
        for (size_t i = 0; i < count; i++)
            visit_stat(&sample[i]);
}

static void print_cell(uint64_t ns)
{
    if (ns == 0)
        fputs("\t-", stdout);
    else
        printf("\t%llu", (unsigned long long)ns);
}

static void print_samples(const struct sample *sample, size_t count)
{
    puts("visit\tcall_ns\tstat_ns\topen_ns\tread_ns\tclose_ns");
    for (size_t i = 0; i < count; i++) {
        printf("%lu\t%llu", (unsigned long)i, (unsigned long long)sample[i].call_ns);
        print_cell(sample[i].stat_ns);
        print_cell(sample[i].open_ns);
        print_cell(sample[i].read_ns);
        print_cell(sample[i].close_ns);
        putchar('\n');
    }
    samples_finish();
}

static bool is_state(const char *word)
{
    return strcmp(word, "warm") == 0 || strcmp(word, "cold") == 0 || strcmp(word, "listed") == 0 ||
           strcmp(word, "walked") == 0;
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "FILES", 1, MAX_FILES, 1000, 0},
        {'d', "DEPTH", 1, MAX_DEPTH, 2, 0},
        {'v', "VISITS", 1, MAX_FILES, 200, 0},
        {'b', "BYTES", 1, MOST_BYTES, FEW_BYTES, 0},
    };
    const struct command_line line = {
        options, 4, WAYS " " OWN_FILES " warm|cold|listed|walked NEW_FOLDER", 4, 4};
    char **words = read_command_line(argc, argv, &line);
    const char *type = words[1], *state = words[2], *folder = words[3];
    size_t count = options[0].value, visits = options[2].value;
    file_bytes = options[3].value;
    const struct way *way = way_named(words[0]);
    if (way == NULL || !files_known(type) || !is_state(state) || visits > count)
        refuse(&line);
    if (strcmp(state, "warm") != 0 && !files_forgettable(type))
        die(EXIT_USAGE, "%s: a file system in a file of its own is needed to forget it", type);

    struct sample *sample = samples_new(count, sizeof *sample);
    size_t folders = (count / FILES_PER_FOLDER + 1) * options[1].value;
    files_make(type, folder, count * (1 + file_bytes / ROOM_BYTES) + folders);
    open_root(folder);
    make_files(sample, count, options[1].value);
    shuffle(sample, count);
    prepare(state, folder, sample, count, visits);
    for (size_t i = 0; i < visits; i++) {
        uint64_t start = now_ns();
        way->visit(&sample[i]);
        sample[i].call_ns = now_ns() - start;
    }
    close_file(root);
    files_remove();
    print_samples(sample, visits);
    free(sample);
    return EXIT_SUCCESS;
}
