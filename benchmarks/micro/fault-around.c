/*
 * fault-around: how many page faults does it take to look at every page of a mapped file?
 *
 * A fault enters the page that was looked at in the page table, and with it those around it that
 * are in the page cache (do_fault_around() of mm/memory.c): by default what lies in the same 64 KiB
 * and in the same mapping. Who looks at one of those later has no fault.
 * Shows: a line for each turn, in which the file is mapped anew, one byte of each page is looked
 * at, and all is unmapped: the minor faults of the looks and the time of a look.
 *   whole  one mapping of the whole file
 *   apart  a mapping for each page, so that no fault can reach the page beside it
 * With -r 1 the pages are looked at in random order. With -a 1 the kernel is told to expect that
 * (MADV_RANDOM).
 * Needs: a mapping for each page with "apart": vm.max_map_count above PAGES.
 * Run:   fault-around -p 4096 -r 1 whole /var/tmp/pages
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

#define MAX_TURNS 10000
#define MAX_PAGES 1000000

struct sample {
    uint64_t faults, ns;
};

struct file {
    int fd;
    size_t pages, page_size;
    size_t *order; /* in which they are looked at */
    volatile const char **page;
};

/* A new file that is gone when we are, with all its pages written, and so in the page cache. */
static void make_file(struct file *file, const char *path)
{
    file->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file->fd == -1)
        die_errno("open %s", path);
    if (unlink(path) == -1)
        die_errno("unlink %s", path);
    char *content = samples_new(file->page_size, 1);
    for (size_t i = 0; i < file->pages; i++)
        if (write(file->fd, content, file->page_size) != (ssize_t)file->page_size)
            die_errno("write");
    free(content);
}

/* By Fisher and Yates, the same in each run. */
static void choose_order(struct file *file, bool at_random)
{
    uint32_t state = 1;
    for (size_t i = 0; i < file->pages; i++)
        file->order[i] = i;
    for (size_t i = file->pages; at_random && i > 1; i--) {
        state = state * 1664525 + 1013904223;
        size_t other = (size_t)((uint64_t)state * i >> 32), last = file->order[i - 1];
        file->order[i - 1] = file->order[other];
        file->order[other] = last;
    }
}

static void map(const struct file *file, size_t first, size_t pages, bool advise)
{
    size_t length = pages * file->page_size;
    char *address =
        mmap(NULL, length, PROT_READ, MAP_SHARED, file->fd, (off_t)(first * file->page_size));
    if (address == MAP_FAILED)
        die_errno("mmap of page %lu", (unsigned long)first);
    if (advise && madvise(address, length, MADV_RANDOM) == -1)
        die_errno("madvise");
    for (size_t i = 0; i < pages; i++)
        file->page[first + i] = address + i * file->page_size;
}

/* Apart, the even pages come first, and then the odd: no two that follow can be joined. */
static void map_all(const struct file *file, bool apart, bool advise)
{
    if (!apart)
        map(file, 0, file->pages, advise);
    for (size_t parity = 0; apart && parity < 2; parity++)
        for (size_t i = parity; i < file->pages; i += 2)
            map(file, i, 1, advise);
}

static void unmap_all(const struct file *file, bool apart)
{
    size_t step = apart ? 1 : file->pages;
    for (size_t i = 0; i < file->pages; i += step)
        if (munmap((void *)file->page[i], step * file->page_size) == -1)
            die_errno("munmap");
}

static uint64_t minor_faults(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == -1)
        die_errno("getrusage");
    return (uint64_t)usage.ru_minflt;
}

static void look_at_all(const struct file *file, struct sample *sample)
{
    uint64_t faults = minor_faults(), start = now_ns();
    for (size_t i = 0; i < file->pages; i++)
        (void)*file->page[file->order[i]];
    sample->ns = now_ns() - start;
    sample->faults = minor_faults() - faults;
}

static void print_samples(const struct sample *samples, size_t count, size_t pages)
{
    puts("pages\tfaults\tfaults_per_page\tlook_ns");
    for (size_t i = 0; i < count; i++)
        printf("%lu\t%llu\t%.4f\t%.2f\n", (unsigned long)pages,
               (unsigned long long)samples[i].faults, (double)samples[i].faults / (double)pages,
               (double)samples[i].ns / (double)pages);
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "TURNS", 1, MAX_TURNS, 10, 0},
        {'p', "PAGES", 1, MAX_PAGES, 4096, 0},
        {'r', "AT_RANDOM", 0, 1, 0, 0},
        {'a', "ADVISE", 0, 1, 0, 0},
    };
    const struct command_line line = {options, 4, "whole|apart NEW_FILE", 2, 2};
    char **words = read_command_line(argc, argv, &line);
    bool apart = strcmp(words[0], "apart") == 0, advise = options[3].value == 1;
    if (!apart && strcmp(words[0], "whole") != 0)
        refuse(&line);
    size_t count = options[0].value;
    struct sample *samples = samples_new(count, sizeof *samples);
    struct file file = {.pages = options[1].value};
    file.page_size = (size_t)sysconf(_SC_PAGESIZE);
    file.order = samples_new(file.pages, sizeof *file.order);
    file.page = samples_new(file.pages, sizeof *file.page);
    make_file(&file, words[1]);
    choose_order(&file, options[2].value == 1);
    for (size_t i = 0; i < count; i++) {
        map_all(&file, apart, advise);
        look_at_all(&file, &samples[i]);
        unmap_all(&file, apart);
    }
    print_samples(samples, count, file.pages);
    free(file.order);
    free(file.page);
    free(samples);
    if (close(file.fd) == -1)
        die_errno("close");
    return EXIT_SUCCESS;
}
