/*
 * directory-size: what does it cost to find one name in a folder that has many?
 *
 * NAMES empty files are made in one folder. Then SAMPLES of its names, and as many that are not
 * there, are asked for. The kernel keeps the names it has found (the dentry cache) and answers from
 * there, whatever the file system is like; so it matters what it has forgotten:
 *   again_ns  open() of a file that has been opened before
 *   miss_ns   open() of a name that is not there and was never asked for: the folder is in memory
 *             and has to be searched
 *   first_ns  open() of a file after the file system has been mounted anew, and all names have been
 *             listed: the folder is searched, and an inode read from the disk
 *   cold_ns   the same without the listing: the folder too is read from the disk
 * Shows: a line for each sample, and in the first of them make_ns, the time to make the files
 * divided by their number, and list_ns, the same for listing all names after the mount. What
 * cannot be forgotten, as on tmpfs, has no first_ns and no cold_ns, and its names are listed warm.
 * Needs: see own_files.h. On ext2 the time goes with the square of NAMES: 50 000 take a minute.
 * Run:   directory-size -n 10000 tmpfs /var/tmp/folder | tail
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"
#include "own_files.h"

#define MAX_NAMES   1000000
#define MAX_SAMPLES 10000
#define NAME_SIZE   32

struct sample {
    size_t file; /* its number */
    uint64_t again_ns, miss_ns, first_ns, cold_ns;
};

static int folder;

static void folder_open(const char *path)
{
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder == -1)
        die_errno("open %s", path);
}

static void close_file(int fd)
{
    if (close(fd) == -1)
        die_errno("close");
}

/* As a camera names them, and somebody else. */
static void name_of(size_t file, bool there, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%s%07lu.jpg", there ? "dsc" : "img", (unsigned long)file);
}

static uint64_t make_files(size_t count)
{
    char name[NAME_SIZE];
    uint64_t start = now_ns();
    for (size_t i = 0; i < count; i++) {
        name_of(i, true, name);
        int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd == -1)
            die_errno("create %s after %lu files", name, (unsigned long)i);
        close_file(fd);
    }
    return (now_ns() - start) / count;
}

static uint64_t open_known(size_t file)
{
    char name[NAME_SIZE];
    name_of(file, true, name);
    uint64_t start = now_ns();
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    uint64_t took = now_ns() - start;
    if (fd == -1)
        die_errno("open %s", name);
    close_file(fd);
    return took;
}

static uint64_t open_missing(size_t file)
{
    char name[NAME_SIZE];
    name_of(file, false, name);
    uint64_t start = now_ns();
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    uint64_t took = now_ns() - start;
    if (fd != -1)
        die(EXIT_FAILURE, "open %s: it should not be there", name);
    if (errno != ENOENT)
        die_errno("open %s", name);
    return took;
}

/* Time for each name, of which there have to be count. */
static uint64_t list_names(const char *path, size_t count)
{
    size_t found = 0;
    uint64_t start = now_ns();
    DIR *names = opendir(path);
    const struct dirent *entry;
    if (names == NULL)
        die_errno("opendir %s", path);
    while ((entry = readdir(names)) != NULL)
        found += *entry->d_name != '.' && strcmp(entry->d_name, "lost+found") != 0;
    uint64_t took = now_ns() - start;
    if (closedir(names) == -1)
        die_errno("closedir");
    if (found != count)
        die(EXIT_FAILURE, "%lu names of %lu were listed", (unsigned long)found,
            (unsigned long)count);
    return took / count;
}

static void mount_anew(const char *path)
{
    close_file(folder);
    files_forget();
    folder_open(path);
}

/*
 * All over the folder, in no order, the same in every run, and none twice before each had its turn:
 * a prime above MAX_NAMES has no factor in common with their number.
 */
static void choose(struct sample *sample, size_t samples, size_t names)
{
    for (size_t i = 0; i < samples; i++)
        sample[i].file = (size_t)((uint64_t)i * 2654435761U % names);
}

static void ask_warm(struct sample *sample, size_t samples)
{
    for (size_t i = 0; i < samples; i++)
        open_known(sample[i].file);
    for (size_t i = 0; i < samples; i++)
        sample[i].again_ns = open_known(sample[i].file);
    for (size_t i = 0; i < samples; i++)
        sample[i].miss_ns = open_missing(i); /* each only once: its absence is remembered */
}

/* A file that was opened since the mount is not forgotten: no more samples than there are names. */
static uint64_t ask_forgotten(struct sample *sample, size_t samples, const char *path, size_t names)
{
    size_t fresh = samples < names ? samples : names;
    mount_anew(path);
    for (size_t i = 0; i < fresh; i++)
        sample[i].cold_ns = open_known(sample[i].file);
    mount_anew(path);
    uint64_t took = list_names(path, names);
    for (size_t i = 0; i < fresh; i++)
        sample[i].first_ns = open_known(sample[i].file);
    return took;
}

static void print_cell(uint64_t ns)
{
    if (ns == 0)
        fputs("\t-", stdout);
    else
        printf("\t%llu", (unsigned long long)ns);
}

static void print_samples(const struct sample *sample, size_t count, uint64_t make, uint64_t list)
{
    puts("sample\tagain_ns\tmiss_ns\tfirst_ns\tcold_ns\tmake_ns\tlist_ns");
    for (size_t i = 0; i < count; i++) {
        printf("%lu", (unsigned long)i);
        print_cell(sample[i].again_ns);
        print_cell(sample[i].miss_ns);
        print_cell(sample[i].first_ns);
        print_cell(sample[i].cold_ns);
        print_cell(i == 0 ? make : 0);
        print_cell(i == 0 ? list : 0);
        putchar('\n');
    }
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "NAMES", 1, MAX_NAMES, 1000, 0},
        {'s', "SAMPLES", 1, MAX_SAMPLES, 200, 0},
    };
    const struct command_line line = {options, 2, OWN_FILES " NEW_FOLDER", 2, 2};
    char **words = read_command_line(argc, argv, &line);
    const char *type = words[0], *path = words[1];
    size_t names = options[0].value, samples = options[1].value;
    if (!files_known(type))
        refuse(&line);
    struct sample *sample = samples_new(samples, sizeof *sample);
    choose(sample, samples, names);
    files_make(type, path, names);
    folder_open(path);

    uint64_t make = make_files(names), list;
    ask_warm(sample, samples);
    if (files_forgettable(type))
        list = ask_forgotten(sample, samples, path, names);
    else
        list = list_names(path, names);
    close_file(folder);
    files_remove();
    print_samples(sample, samples, make, list);
    free(sample);
    return EXIT_SUCCESS;
}
