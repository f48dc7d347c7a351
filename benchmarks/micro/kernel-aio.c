/*
 * kernel-aio: how long does io_submit() keep its caller, and when is what it asked for there?
 *
 * A file of BLOCKS blocks is made on a file system of the given type (own_files.h). Then BATCHES
 * times DEPTH of its blocks, in no order, are asked for at once, in one of these ways:
 *   direct    io_submit(), the file opened with O_DIRECT: what it was made for
 *   buffered  io_submit() without O_DIRECT; before each batch the file's pages are thrown away
 *   hot       the same, the pages in memory
 *   posix     aio_read() of the C library in place of io_submit(), pages thrown away
 *   loop      pread() with O_DIRECT, one after the other
 * Shows: a line for each batch. submit_ns: the time of io_submit(), or of all aio_read() calls, in
 * which a server does nothing else. done_ns: from there on until all are done; read_ns: the same
 * from the first call on, divided by DEPTH. counted: what an eventfd (IOCB_FLAG_RESFD) counted, for
 * each read. The last line has instead cancelled, 1 if io_cancel() could stop a read just begun,
 * and threads, how many this process has beside its first.
 * Source: io_submit(2), io_cancel(2), eventfd(2), linux/aio_abi.h; aio(7).
 * Needs: Linux; for O_DIRECT a file system that knows it, else it exits with 77.
 * Run:   kernel-aio -q 32 direct here /var/tmp/blocks
 */
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "blocks.h"
#include "die.h"
#include "micro.h"
#include "own_files.h"

#define MAX_BATCHES 10000
#define MAX_DEPTH   512
#define MAX_BLOCKS  65536
#define PATH_SIZE   4096
#define RUN_SECONDS 60

struct sample {
    uint64_t submit_ns, done_ns, counted;
};

static struct run {
    int fd, count_fd;
    size_t depth, blocks;
    aio_context_t context;
    char *buffers; /* DEPTH blocks, aligned for O_DIRECT */
    struct iocb iocbs[MAX_DEPTH];
    struct aiocb posix[MAX_DEPTH];
    size_t asked[MAX_DEPTH]; /* which blocks */
} run;

static char *buffer_of(size_t i)
{
    return run.buffers + i * BLOCK_BYTES;
}

/* Blocks all over the file, none twice in a batch: a prime is no factor of their number. */
static void choose(size_t batch)
{
    for (size_t i = 0; i < run.depth; i++)
        run.asked[i] = (size_t)((uint64_t)(batch * run.depth + i) * 2654435761U % run.blocks);
}

static void prepare(void)
{
    for (size_t i = 0; i < run.depth; i++) {
        run.iocbs[i] = (struct iocb){.aio_lio_opcode = IOCB_CMD_PREAD,
                                     .aio_fildes = (uint32_t)run.fd,
                                     .aio_buf = (uint64_t)(uintptr_t)buffer_of(i),
                                     .aio_nbytes = BLOCK_BYTES,
                                     .aio_offset = block_offset(run.asked[i]),
                                     .aio_flags = IOCB_FLAG_RESFD,
                                     .aio_resfd = (uint32_t)run.count_fd};
    }
}

static void submit_all(void)
{
    struct iocb *list[MAX_DEPTH];
    size_t sent = 0;
    for (size_t i = 0; i < run.depth; i++)
        list[i] = &run.iocbs[i];
    while (sent < run.depth) {
        long n = syscall(SYS_io_submit, run.context, (long)(run.depth - sent), list + sent);
        if (n == -1 && errno == EINVAL && sent == 0)
            die(EXIT_UNSUPPORTED, "io_submit: this file cannot be read so");
        if (n == -1 && errno != EINTR && errno != EAGAIN)
            die_errno("io_submit");
        sent += n > 0 ? (size_t)n : 0;
    }
}

static void await_all(void)
{
    struct io_event events[MAX_DEPTH];
    size_t done = 0;
    while (done < run.depth) {
        long left = (long)(run.depth - done);
        long n = syscall(SYS_io_getevents, run.context, left, left, events, NULL);
        if (n == -1 && errno != EINTR)
            die_errno("io_getevents");
        for (long i = 0; i < n; i++)
            if (events[i].res != BLOCK_BYTES)
                die(EXIT_FAILURE, "a read ended with %lld", (long long)events[i].res);
        done += n > 0 ? (size_t)n : 0;
    }
}

static void batch_kernel(struct sample *sample)
{
    prepare();
    uint64_t start = now_ns();
    submit_all();
    uint64_t submitted = now_ns();
    await_all();
    sample->done_ns = now_ns() - submitted;
    sample->submit_ns = submitted - start;
    if (read(run.count_fd, &sample->counted, sizeof sample->counted) !=
        (ssize_t)sizeof sample->counted)
        die_errno("read of the eventfd");
}

static void await_posix(struct aiocb *aio)
{
    const struct aiocb *list[1] = {aio};
    while (aio_error(aio) == EINPROGRESS)
        if (aio_suspend(list, 1, NULL) == -1 && errno != EINTR)
            die_errno("aio_suspend");
    if (aio_return(aio) != BLOCK_BYTES)
        die(EXIT_FAILURE, "a read of the C library failed");
}

static void batch_posix(struct sample *sample)
{
    for (size_t i = 0; i < run.depth; i++) {
        run.posix[i] = (struct aiocb){.aio_fildes = run.fd, .aio_buf = buffer_of(i)};
        run.posix[i].aio_nbytes = BLOCK_BYTES;
        run.posix[i].aio_offset = block_offset(run.asked[i]);
        run.posix[i].aio_sigevent.sigev_notify = SIGEV_NONE;
    }
    uint64_t start = now_ns();
    for (size_t i = 0; i < run.depth; i++)
        if (aio_read(&run.posix[i]) == -1)
            die_errno("aio_read");
    uint64_t submitted = now_ns();
    for (size_t i = 0; i < run.depth; i++)
        await_posix(&run.posix[i]);
    sample->done_ns = now_ns() - submitted;
    sample->submit_ns = submitted - start;
}

static void batch_loop(struct sample *sample)
{
    uint64_t start = now_ns();
    for (size_t i = 0; i < run.depth; i++)
        block_read(run.fd, buffer_of(i), run.asked[i]);
    sample->submit_ns = now_ns() - start;
    sample->done_ns = 0;
}

/* A read of the disk has begun, and is not wanted any more. */
static bool can_cancel(void)
{
    struct io_event event;
    prepare();
    submit_all();
    bool cancelled = syscall(SYS_io_cancel, run.context, &run.iocbs[run.depth - 1], &event) == 0;
    if (!cancelled)
        await_all();
    return cancelled;
}

static int threads_beside(void)
{
    int count = -1; /* the first one */
    const struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL)
        die(EXIT_UNSUPPORTED, "/proc/self/task is needed to count threads");
    while ((entry = readdir(tasks)) != NULL)
        count += *entry->d_name != '.';
    closedir(tasks);
    return count;
}

static const struct way {
    const char *name;
    void (*batch)(struct sample *);
    int flags;
    bool forget;
} ways[] = {
    {"direct", batch_kernel, O_DIRECT, false}, {"buffered", batch_kernel, 0, true},
    {"hot", batch_kernel, 0, false},           {"posix", batch_posix, 0, true},
    {"loop", batch_loop, O_DIRECT, false},
};

static const struct way *way_named(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

static void open_all(const struct way *way, const char *folder)
{
    char path[PATH_SIZE];
    if (snprintf(path, sizeof path, "%s/blocks", folder) >= (int)sizeof path)
        die(EXIT_FAILURE, "%s: name too long", folder);
    blocks_make(path, run.blocks);
    if (way->flags == O_DIRECT) {
        int probe = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
        if (probe == -1 && errno == EINVAL)
            die(EXIT_UNSUPPORTED, "this file system does not know O_DIRECT");
        close(probe);
    }
    run.fd = blocks_open(path, way->flags);
    run.count_fd = eventfd(0, EFD_CLOEXEC);
    if (run.count_fd == -1)
        die_errno("eventfd");
    if (syscall(SYS_io_setup, MAX_DEPTH, &run.context) == -1)
        die(errno == ENOSYS ? EXIT_UNSUPPORTED : EXIT_FAILURE, "io_setup: %s", strerror(errno));
    int error = posix_memalign((void **)&run.buffers, BLOCK_BYTES, run.depth * BLOCK_BYTES);
    if (error != 0)
        die(EXIT_FAILURE, "posix_memalign: %s", strerror(error));
    memset(run.buffers, 0, run.depth * BLOCK_BYTES);
}

static void close_all(void)
{
    if (syscall(SYS_io_destroy, run.context) == -1)
        die_errno("io_destroy");
    if (close(run.fd) == -1 || close(run.count_fd) == -1)
        die_errno("close");
    free(run.buffers);
}

static void print_samples(const struct sample *sample, size_t count, int cancelled, int threads)
{
    puts("batch\tsubmit_ns\tdone_ns\tread_ns\tcounted\tcancelled\tthreads");
    for (size_t i = 0; i < count; i++)
        printf("%lu\t%llu\t%llu\t%.0f\t%.6g\t-\t-\n", (unsigned long)i,
               (unsigned long long)sample[i].submit_ns, (unsigned long long)sample[i].done_ns,
               (double)(sample[i].submit_ns + sample[i].done_ns) / (double)run.depth,
               (double)sample[i].counted / (double)run.depth);
    printf("%lu\t-\t-\t-\t-\t%d\t%d\n", (unsigned long)count, cancelled, threads);
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "BATCHES", 1, MAX_BATCHES, 50, 0},
        {'q', "DEPTH", 1, MAX_DEPTH, 16, 0},
        {'m', "BLOCKS", 1, MAX_BLOCKS, 256, 0},
    };
    const struct command_line line = {
        options, 3, "direct|buffered|hot|posix|loop " OWN_FILES " NEW_FOLDER", 3, 3};
    char **words = read_command_line(argc, argv, &line);
    const struct way *way = way_named(words[0]);
    size_t batches = options[0].value;
    run.depth = options[1].value;
    run.blocks = options[2].value;
    if (way == NULL || !files_known(words[1]) || run.blocks < run.depth)
        refuse(&line);
    struct sample *sample = samples_new(batches, sizeof *sample);
    alarm(RUN_SECONDS);
    files_make(words[1], words[2], run.blocks * BLOCK_SPACING / BLOCK_BYTES);
    open_all(way, words[2]);

    for (size_t i = 0; i < batches; i++) {
        choose(i);
        if (way->forget)
            blocks_forget(run.fd);
        way->batch(&sample[i]);
    }
    int threads = threads_beside();
    int cancelled = can_cancel();

    close_all();
    files_remove();
    print_samples(sample, batches, cancelled, threads);
    free(sample);
    return EXIT_SUCCESS;
}
