/*
 * disk-read: how many files a second do so many readers get from a disk?
 *
 * Shows: a line for each part of the run, with the columns of museum-model, so that a disk and its
 * model can be laid one upon the other.
 *   files_per_s, mb_per_s  of all READERS together
 *   read_ms                mean time for one file: open(), read() to its end, close()
 * Each reader is a thread that takes the next file of a common order: the paths that LIST holds,
 * one a line, at random (drawn anew with each process), or sorted: as they stand there, from a
 * random one on. No file is read twice, if there are enough. One part more is read first. With -x
 * SPEED the disk is so many times as fast (museum --speed), and all is told in its own seconds.
 * Needs: threads; the museum disk, to be more than a test of memory.
 * Run:   museum --list files=1000x100K | sed 's#^#/tmp/disk/#' > list; disk-read -j 16 list random
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

#define PIECE       65536
#define MAX_READERS 4096
#define STACK       (PIECE + 65536)

struct run {
    char *text;   /* of LIST, with NULs for newlines */
    char **paths; /* in the order in which they are read */
    size_t count;
    size_t readers, part, parts;
    double speed;

    pthread_mutex_t lock; /* of what follows */
    size_t begun, done;
    uint64_t bytes, waited_ns; /* of this part */
    uint64_t *ended_at;        /* of each part */
    uint64_t *part_bytes, *part_waited_ns;
};

static void read_list(struct run *run, const char *name)
{
    size_t size = 0, room = 1 << 20, got;
    FILE *file = fopen(name, "r");
    if (file == NULL)
        die_errno("%s", name);
    run->text = malloc(room);
    while (run->text != NULL && (got = fread(run->text + size, 1, room - size - 1, file)) > 0) {
        size += got;
        if (room - size < 2)
            run->text = realloc(run->text, room *= 2);
    }
    if (run->text == NULL || ferror(file) || fclose(file) == EOF)
        die_errno("%s", name);
    if (size > 0 && run->text[size - 1] != '\n') /* there is room for it */
        run->text[size++] = '\n';
    run->text[size] = '\0';
    for (char *c = run->text; (c = strchr(c, '\n')) != NULL; c++)
        run->count++;
    run->paths = calloc(run->count + 1, sizeof *run->paths);
    if (run->paths == NULL)
        die_errno("calloc");
    char *rest = run->text;
    for (size_t i = 0; i < run->count; i++)
        run->paths[i] = strsep(&rest, "\n");
    if (run->count == 0)
        die(EXIT_FAILURE, "%s: no paths", name);
}

/* Fisher and Yates; the remainder's bias, one in 2^40, is no matter here. */
static void shuffle(struct run *run)
{
    uint64_t state = now_ns() | 1;
    for (size_t i = run->count - 1; i > 0; i--) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        size_t j = (size_t)((state >> 11) % (i + 1));
        char *path = run->paths[i];
        run->paths[i] = run->paths[j];
        run->paths[j] = path;
    }
}

/* NULL: there is no more to read. */
static const char *next_path(struct run *run)
{
    const char *path = NULL;
    pthread_mutex_lock(&run->lock);
    if (run->done < run->part * (run->parts + 1))
        path = run->paths[run->begun++ % run->count];
    pthread_mutex_unlock(&run->lock);
    return path;
}

static void note(struct run *run, uint64_t bytes, uint64_t ns)
{
    pthread_mutex_lock(&run->lock);
    run->bytes += bytes;
    run->waited_ns += ns;
    size_t part = run->done / run->part;
    if (++run->done % run->part == 0 && part <= run->parts) {
        run->ended_at[part] = now_ns();
        run->part_bytes[part] = run->bytes;
        run->part_waited_ns[part] = run->waited_ns;
        run->bytes = run->waited_ns = 0;
    }
    pthread_mutex_unlock(&run->lock);
}

static void *reader(void *argument)
{
    struct run *run = argument;
    char piece[PIECE];
    const char *path;

    while ((path = next_path(run)) != NULL) {
        uint64_t start = now_ns(), bytes = 0;
        ssize_t got;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd == -1)
            die_errno("%s", path);
        while ((got = read(fd, piece, sizeof piece)) > 0)
            bytes += (uint64_t)got;
        if (got == -1 || close(fd) == -1)
            die_errno("%s", path);
        note(run, bytes, now_ns() - start);
    }
    return NULL;
}

static void read_all(struct run *run)
{
    pthread_t *threads = calloc(run->readers, sizeof *threads);
    pthread_attr_t attr;
    if (threads == NULL)
        die_errno("calloc");
    if (pthread_mutex_init(&run->lock, NULL) != 0 || pthread_attr_init(&attr) != 0 ||
        pthread_attr_setstacksize(&attr, STACK) != 0)
        die(EXIT_FAILURE, "pthread: no memory");
    for (size_t i = 0; i < run->readers; i++) {
        int error = pthread_create(&threads[i], &attr, reader, run);
        if (error != 0)
            die(EXIT_FAILURE, "pthread_create: %s", strerror(error));
    }
    for (size_t i = 0; i < run->readers; i++)
        pthread_join(threads[i], NULL); /* cannot fail: it is ours and joinable */
    pthread_attr_destroy(&attr);
    pthread_mutex_destroy(&run->lock);
    free(threads);
}

static void print_parts(const struct run *run)
{
    puts("readers\tfiles_per_s\tmb_per_s\tread_ms");
    for (size_t i = 1; i <= run->parts; i++) {
        double s = (double)(run->ended_at[i] - run->ended_at[i - 1]) / 1e9 * run->speed;
        printf("%lu\t%.6g\t%.6g\t%.6g\n", (unsigned long)run->readers, (double)run->part / s,
               (double)run->part_bytes[i] / s / 1e6,
               (double)run->part_waited_ns[i] / 1e6 * run->speed / (double)run->part);
    }
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'j', "READERS", 1, MAX_READERS, 1, 0},
        {'n', "FILES", 1, 1000000, 100, 0},
        {'p', "PARTS", 1, 1000, 5, 0},
        {'x', "SPEED", 1, 1000, 1, 0},
    };
    const struct command_line line = {options, 4, "LIST random|sorted", 2, 2};
    char **words = read_command_line(argc, argv, &line);
    bool sorted = strcmp(words[1], "sorted") == 0;
    if (!sorted && strcmp(words[1], "random") != 0)
        refuse(&line);

    struct run run = {.readers = options[0].value, .part = options[1].value};
    run.parts = options[2].value;
    run.speed = (double)options[3].value;
    run.ended_at = samples_new(run.parts + 1, sizeof *run.ended_at);
    run.part_bytes = samples_new(run.parts + 1, sizeof *run.part_bytes);
    run.part_waited_ns = samples_new(run.parts + 1, sizeof *run.part_waited_ns);
    read_list(&run, words[0]);
    if (sorted)
        run.begun = now_ns() / 1000 % run.count;
    else
        shuffle(&run);
    read_all(&run);
    print_parts(&run);
    free(run.part_waited_ns);
    free(run.part_bytes);
    free(run.ended_at);
    free(run.paths);
    free(run.text);
    return EXIT_SUCCESS;
}
