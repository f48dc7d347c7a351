/*
 * mmap-pages: what does one more mapping cost, when a process has many?
 *
 * Shows: every other page of a file is mapped, one page at a time, so that the kernel can join no
 * two of them. A line has the times of one page: mmap(), the first look at it (a page fault; the
 * page is in the page cache, so no disk is waited for), and munmap(), the last mapped first:
 * `mapped` others are there each time. read_ns is pread() of the same page into a buffer, taken
 * before anything was mapped.
 * The file is made for it, without blocks on the disk, and has no name while it is measured.
 * With -k 11 only every 11th page gets a line; all are mapped all the same. Take an odd number: a
 * page table is full after a power of two of pages, and an even step meets that too often or never.
 * Needs: two pages of page cache a mapping (200 MB with the default); vm.max_map_count above the
 * number of mappings, else the run ends with status 1.
 * Run:   mmap-pages -n 10000 -k 11 /var/tmp/pages | tail
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "die.h"
#include "micro.h"

#define DEFAULT_MAPPINGS 25000
#define MAX_MAPPINGS     100000 /* 800 MB of file */
#define SPACING          2      /* pages from one mapping to the next */

struct page {
    uint64_t mmap_ns;
    uint64_t touch_ns;
    uint64_t munmap_ns;
    uint64_t read_ns;
    volatile const char *address;
};

static size_t page_size;

static off_t offset_of(size_t i)
{
    return (off_t)(i * SPACING * page_size);
}

/* A new file that is gone when we are, with all its pages in the page cache. */
static int open_pages(const char *path, size_t count)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd == -1)
        die_errno("open %s", path);
    if (unlink(path) == -1)
        die_errno("unlink %s", path);
    if (ftruncate(fd, offset_of(count)) == -1)
        die_errno("ftruncate");
    return fd;
}

/* The first time, a read makes the page; only the second one is a sample. */
static void read_pages(int fd, struct page *page, size_t count)
{
    char *buffer = samples_new(page_size, 1);
    for (int turn = 1; turn <= 2; turn++) {
        for (size_t i = 0; i < count; i++) {
            uint64_t start = now_ns();
            ssize_t n = pread(fd, buffer, page_size, offset_of(i));
            page[i].read_ns = now_ns() - start;
            if (n == -1)
                die_errno("pread");
            if ((size_t)n != page_size)
                die(EXIT_FAILURE, "pread: %ld bytes of a page", (long)n);
        }
    }
    free(buffer);
}

/* Returns how many it mapped: less than count, with errno set, if the kernel refused one. */
static size_t map_pages(int fd, struct page *page, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t start = now_ns();
        void *address = mmap(NULL, page_size, PROT_READ, MAP_SHARED, fd, offset_of(i));
        uint64_t mapped = now_ns();
        if (address == MAP_FAILED)
            return i;
        page[i].address = address;
        (void)*page[i].address;
        page[i].touch_ns = now_ns() - mapped;
        page[i].mmap_ns = mapped - start;
    }
    return count;
}

static void unmap_pages(struct page *page, size_t count)
{
    for (size_t i = count; i > 0; i--) {
        uint64_t start = now_ns();
        if (munmap((void *)page[i - 1].address, page_size) == -1)
            die_errno("munmap");
        page[i - 1].munmap_ns = now_ns() - start;
    }
}

static void print_samples(const struct page *page, size_t count, size_t step)
{
    puts("mapped\tmmap_ns\ttouch_ns\tmunmap_ns\tread_ns");
    for (size_t i = 0; i < count; i += step)
        printf("%lu\t%llu\t%llu\t%llu\t%llu\n", (unsigned long)i,
               (unsigned long long)page[i].mmap_ns, (unsigned long long)page[i].touch_ns,
               (unsigned long long)page[i].munmap_ns, (unsigned long long)page[i].read_ns);
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "MAPPINGS", 1, MAX_MAPPINGS, DEFAULT_MAPPINGS, 0},
        {'k', "STEP", 1, MAX_MAPPINGS, 1, 0},
    };
    char **path =
        read_command_line(argc, argv, &(struct command_line){options, 2, "NEW_FILE", 1, 1});
    size_t count = options[0].value;
    size_t step = options[1].value;
    struct page *page = samples_new(count, sizeof *page);
    long bytes = sysconf(_SC_PAGESIZE);
    if (bytes == -1)
        die_errno("sysconf");
    page_size = (size_t)bytes;
    int fd = open_pages(*path, count);

    read_pages(fd, page, count);
    size_t mapped = map_pages(fd, page, count);
    int mmap_errno = errno;
    unmap_pages(page, mapped);

    print_samples(page, mapped, step);
    free(page);
    if (close(fd) == -1)
        die_errno("close");
    if (mapped < count)
        die(EXIT_FAILURE, "mmap: %s after %lu mappings", strerror(mmap_errno),
            (unsigned long)mapped);
    return EXIT_SUCCESS;
}
