/*
 * aio-threads: how many threads does the C library's aio_read() start, and what are they good for?
 *
 * READS reads are asked for at once, in one of these ways:
 *   pipes   aio_read(), each from an empty pipe of its own: whoever reads there sleeps
 *   pipe    aio_read(), all from one empty pipe
 *   signal  as pipes; each read ends with a signal, whose si_value has to name it
 *   files   aio_read(), each a block of one file, through a descriptor of its own
 *   file    aio_read() of the same blocks through one descriptor
 *   pool    pread() of the same blocks by THREADS threads that wait for it already
 *   loop    pread() of the same blocks one after the other, by the first thread
 * With -c 1 the file's blocks are not in memory.
 * Shows: one sample. threads: how many were started, at most; per_read: for each of the reads.
 * all_ns: from the first call until all reads are done; with pipes, from before the first byte is
 * in one.
 * overtakes: the pipe that was asked for last gets a byte first; 1 if that read then ends, and 0 if
 * after PATIENCE_MS it has not, behind others that have nothing to read. named: the share of the
 * reads that were named by a signal after they were done, and once.
 * Source: aio(7), sigevent(7). glibc has at most 20 threads (struct aioinit), musl one for each.
 * Needs: Linux, to count threads; NEW_FILE is made by the ways that need it, and gone afterwards.
 * Run:   aio-threads -n 64 pipes /var/tmp/blocks
 */
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "blocks.h"
#include "die.h"
#include "micro.h"

#define MAX_READS   4096
#define MAX_THREADS 256
#define PATIENCE_MS 300
#define SETTLE_MS   20   /* as long without a new thread means that there will be none */
#define RUN_SECONDS 60   /* should a read never end, a signal does */
#define NOT_SHOWN   (-1) /* this way has no such sample */

struct request {
    struct aiocb aio;
    int fd, feed; /* feed: the other end of a pipe */
    char *buffer;
    bool named;
};

struct result {
    double threads, overtakes, named;
    uint64_t all_ns;
};

static struct request *request;
static size_t reads, pool_threads;

static void sleep_ms(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    if (nanosleep(&pause, NULL) == -1 && errno != EINTR)
        die_errno("nanosleep");
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

static int threads_settled(void)
{
    int before, now = threads_beside();
    do {
        before = now;
        sleep_ms(SETTLE_MS);
        now = threads_beside();
    } while (now != before);
    return now;
}

static void ask(size_t i, off_t offset, size_t size, int signal_number)
{
    struct aiocb *aio = &request[i].aio;
    *aio = (struct aiocb){.aio_fildes = request[i].fd, .aio_buf = request[i].buffer};
    aio->aio_nbytes = size;
    aio->aio_offset = offset;
    aio->aio_sigevent.sigev_notify = signal_number == 0 ? SIGEV_NONE : SIGEV_SIGNAL;
    aio->aio_sigevent.sigev_signo = signal_number;
    aio->aio_sigevent.sigev_value.sival_int = (int)i;
    if (aio_read(aio) == -1)
        die_errno("aio_read %lu", (unsigned long)i);
}

/* False if it has not ended after so many milliseconds; 0: waits for ever. */
static bool await(size_t i, long ms)
{
    const struct aiocb *list[1] = {&request[i].aio};
    const struct timespec patience = {ms / 1000, ms % 1000 * 1000000};
    while (aio_error(list[0]) == EINPROGRESS) {
        if (aio_suspend(list, 1, ms == 0 ? NULL : &patience) == 0 || errno == EINTR)
            continue;
        if (errno == EAGAIN && ms > 0)
            return false;
        die_errno("aio_suspend");
    }
    return true;
}

static void finish(size_t i, ssize_t size)
{
    await(i, 0);
    ssize_t n = aio_return(&request[i].aio);
    if (n != size)
        die(EXIT_FAILURE, "read %lu: %ld bytes of %ld", (unsigned long)i, (long)n, (long)size);
}

static void feed(size_t i)
{
    if (write(request[i].feed, "x", 1) != 1)
        die_errno("write to a pipe");
}

static void open_pipes(bool shared)
{
    for (size_t i = 0; i < reads; i++) {
        int ends[2] = {request[0].fd, request[0].feed};
        if ((i == 0 || !shared) && pipe(ends) == -1)
            die_errno("pipe %lu", (unsigned long)i);
        request[i].fd = ends[0];
        request[i].feed = ends[1];
    }
}

static struct result read_pipe_or_pipes(bool shared)
{
    struct result result = {.overtakes = NOT_SHOWN, .named = NOT_SHOWN};
    open_pipes(shared);
    for (size_t i = 0; i < reads; i++)
        ask(i, 0, 1, 0);
    result.threads = threads_settled();
    if (!shared) {
        feed(reads - 1);
        result.overtakes = await(reads - 1, PATIENCE_MS) ? 1 : 0;
    }
    uint64_t start = now_ns();
    for (size_t i = 0; i < reads - !shared; i++)
        feed(i);
    for (size_t i = 0; i < reads; i++)
        finish(i, 1);
    result.all_ns = now_ns() - start;
    return result;
}

static struct result read_pipes(void)
{
    return read_pipe_or_pipes(false);
}

static struct result read_pipe(void)
{
    return read_pipe_or_pipes(true);
}

/* Whether a signal came that named a read that is done, and that nobody named before. */
static bool next_signal_names(const sigset_t *set)
{
    siginfo_t info;
    int number;
    do
        number = sigwaitinfo(set, &info);
    while (number == -1 && errno == EINTR);
    if (number == -1)
        die_errno("sigwaitinfo");
    size_t i = (size_t)info.si_value.sival_int;
    if (i >= reads || request[i].named || aio_error(&request[i].aio) != 0)
        return false;
    request[i].named = true;
    return true;
}

static struct result read_signals(void)
{
    struct result result = {.overtakes = NOT_SHOWN};
    sigset_t set;
    size_t named = 0;
    if (sigemptyset(&set) == -1 || sigaddset(&set, SIGRTMIN) == -1)
        die_errno("sigaddset");
    int error = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (error != 0)
        die(EXIT_FAILURE, "pthread_sigmask: %s", strerror(error));
    open_pipes(false);
    for (size_t i = 0; i < reads; i++)
        ask(i, 0, 1, SIGRTMIN);
    result.threads = threads_settled();
    uint64_t start = now_ns();
    for (size_t i = reads; i > 0; i--)
        feed(i - 1);
    for (size_t i = 0; i < reads; i++)
        named += next_signal_names(&set);
    result.all_ns = now_ns() - start;
    for (size_t i = 0; i < reads; i++)
        finish(i, 1);
    result.named = (double)named / (double)reads;
    return result;
}

static struct result read_files(void)
{
    struct result result = {.overtakes = NOT_SHOWN, .named = NOT_SHOWN};
    uint64_t start = now_ns();
    for (size_t i = 0; i < reads; i++)
        ask(i, block_offset(i), BLOCK_BYTES, 0);
    for (size_t i = 0; i < reads; i++)
        finish(i, BLOCK_BYTES);
    result.all_ns = now_ns() - start;
    result.threads = threads_beside(); /* they stay for a second */
    return result;
}

/* A queue of numbers: a post for each read to be taken, and at the end one for each thread. */
static struct {
    sem_t posts, all_done;
    atomic_size_t taken, done;
} queue;

static void take(sem_t *semaphore)
{
    while (sem_wait(semaphore) == -1)
        if (errno != EINTR)
            die_errno("sem_wait");
}

static void post(sem_t *semaphore)
{
    if (sem_post(semaphore) == -1)
        die_errno("sem_post");
}

static void *work(void *unused)
{
    for (;;) {
        take(&queue.posts);
        size_t i = atomic_fetch_add(&queue.taken, 1);
        if (i >= reads)
            return unused;
        block_read(request[i].fd, request[i].buffer, i);
        if (atomic_fetch_add(&queue.done, 1) + 1 == reads)
            post(&queue.all_done);
    }
}

static struct result read_pool(void)
{
    struct result result = {
        .threads = (double)pool_threads, .overtakes = NOT_SHOWN, .named = NOT_SHOWN};
    pthread_t thread[MAX_THREADS];
    int error = 0;
    if (sem_init(&queue.posts, 0, 0) == -1 || sem_init(&queue.all_done, 0, 0) == -1)
        die_errno("sem_init");
    for (size_t i = 0; i < pool_threads && error == 0; i++)
        error = pthread_create(&thread[i], NULL, work, NULL);
    if (error != 0)
        die(EXIT_FAILURE, "pthread_create: %s", strerror(error));
    sleep_ms(SETTLE_MS); /* until all of them wait */
    uint64_t start = now_ns();
    for (size_t i = 0; i < reads; i++)
        post(&queue.posts);
    take(&queue.all_done);
    result.all_ns = now_ns() - start;
    for (size_t i = 0; i < pool_threads; i++)
        post(&queue.posts);
    for (size_t i = 0; i < pool_threads; i++)
        if ((error = pthread_join(thread[i], NULL)) != 0)
            die(EXIT_FAILURE, "pthread_join: %s", strerror(error));
    return result;
}

static struct result read_loop(void)
{
    struct result result = {.overtakes = NOT_SHOWN, .named = NOT_SHOWN};
    uint64_t start = now_ns();
    for (size_t i = 0; i < reads; i++)
        block_read(request[i].fd, request[i].buffer, i);
    result.all_ns = now_ns() - start;
    return result;
}

static const struct way {
    const char *name;
    struct result (*read)(void);
    bool blocks; /* of a file; else pipes, which the way opens itself */
    bool shared; /* one descriptor for all */
} ways[] = {
    {"pipes", read_pipes, false, false},    {"pipe", read_pipe, false, true},
    {"signal", read_signals, false, false}, {"files", read_files, true, false},
    {"file", read_files, true, true},       {"pool", read_pool, true, true},
    {"loop", read_loop, true, true},
};

static const struct way *way_named(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

static const char *file_name; /* the file, while it has a name */

static void remove_file(void)
{
    if (file_name != NULL)
        unlink(file_name);
}

static void open_blocks(const char *path, bool shared, bool cold)
{
    blocks_make(path, reads);
    file_name = path;
    if (atexit(remove_file) != 0)
        die(EXIT_FAILURE, "atexit: no room");
    for (size_t i = 0; i < reads; i++)
        request[i].fd = shared && i > 0 ? request[0].fd : blocks_open(path, 0);
    if (unlink(path) == -1)
        die_errno("unlink %s", path);
    file_name = NULL;
    if (cold)
        blocks_forget(request[0].fd);
}

static void print_cell(double value)
{
    if (value == NOT_SHOWN)
        fputs("\t-", stdout);
    else
        printf("\t%.6g", value);
}

static void print_sample(const struct result *result)
{
    puts("reads\tall_ns\tthreads\tper_read\tovertakes\tnamed");
    printf("%lu\t%llu", (unsigned long)reads, (unsigned long long)result->all_ns);
    print_cell(result->threads);
    print_cell(result->threads / (double)reads);
    print_cell(result->overtakes);
    print_cell(result->named);
    putchar('\n');
    samples_finish();
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "READS", 1, MAX_READS, 64, 0},
        {'t', "THREADS", 1, MAX_THREADS, 16, 0},
        {'c', "COLD", 0, 1, 0, 0},
    };
    const struct command_line line = {options, 3, "pipes|pipe|signal|files|file|pool|loop NEW_FILE",
                                      2, 2};
    char **words = read_command_line(argc, argv, &line);
    const struct way *way = way_named(words[0]);
    if (way == NULL)
        refuse(&line);
    reads = options[0].value;
    pool_threads = options[1].value;
    request = samples_new(reads, sizeof *request);
    char *buffers = samples_new(reads, BLOCK_BYTES);
    for (size_t i = 0; i < reads; i++)
        request[i].buffer = buffers + i * BLOCK_BYTES;
    alarm(RUN_SECONDS);

    if (way->blocks)
        open_blocks(words[1], way->shared, options[2].value == 1);
    struct result result = way->read();
    print_sample(&result);
    free(buffers);
    free(request);
    return EXIT_SUCCESS;
}
