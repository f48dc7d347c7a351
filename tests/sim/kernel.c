/* kernel.c: time, chance, descriptors, memory, and the calls that are about those alone. */
#include "sim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "stop.h"

struct world w;
struct fd fds[FDS];
int fds_end = 4;
struct memory memory;
void (*jobs_act)(void);
bool (*job_is_for)(int fd);
int (*jobs_left)(void);

/* ---- chance: xorshift64* */

static uint64_t chance(void)
{
    static uint64_t x;

    if (x == 0)
        x = w.seed | 1;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    return x * 2685821657736338717ULL;
}

unsigned pick(unsigned n)
{
    return (unsigned)((chance() >> 32) * n >> 32);
}

bool one_in(unsigned n)
{
    return pick(n) == 0;
}

bool fails(int rate)
{
    return rate > 0 && w.phase == CHAOS && w.waited && one_in((unsigned)rate);
}

/* ---- time */

static long long alarm_at = NEVER, stop_at = NEVER;
static bool acting; /* the world does something: what it calls is no step of the server */

void due(long long at)
{
    if (at < w.next_due)
        w.next_due = at;
}

static void others_act(void)
{
    acting = true;
    do {
        w.next_due = alarm_at;
        due(w.told ? NEVER : stop_at);
        sockets_act();
        if (jobs_act != NULL)
            jobs_act();
        peers_act();
    } while (w.now >= w.next_due && w.now < alarm_at && (w.told || w.now < stop_at));
    acting = false;
}

void stall(void)
{
    if (w.phase == CHAOS && one_in(10))
        pass_time(w.now + pick(50) * MS);
}

void step(void)
{
    if (acting)
        return;
    *steps_done = ++w.steps;
    w.now += pick(40);
    if (w.phase == CHAOS && one_in(500)) /* other processes have had the processor */
        w.now += pick(100) * MS;
    if (w.now >= w.next_due)
        others_act();
    acting = true;
    signal_due();
    acting = false;
}

bool pass_time(long long until)
{
    if (w.now >= until)
        return false;
    if (w.next_due > w.now)
        w.now = w.next_due < until ? w.next_due : until;
    if (w.now >= w.next_due)
        others_act();
    return true;
}

WRAP(int, clock_gettime, clockid_t id, struct timespec *t)
{
    (void)id;
    t->tv_sec = w.now / S;
    t->tv_nsec = w.now % S * 1000;
    return 0;
}

#define EPOCH 1700000000

WRAP(time_t, time, time_t *t)
{
    (void)t;
    return EPOCH + w.now / S;
}

/* ---- descriptors */

int new_fd(enum kind kind)
{
    for (int fd = 3; fd < w.fd_limit; fd++) {
        if (fds[fd].kind != UNUSED)
            continue;
        fds[fd] = (struct fd){.kind = kind};
        fds_end = fd >= fds_end ? fd + 1 : fds_end;
        return fd;
    }
    w.shortage = w.steps;
    errno = EMFILE;
    return -1;
}

struct fd *get_fd(int fd, const char *call)
{
    if (fd < 0 || fd >= FDS || fds[fd].kind == UNUSED)
        fault("%s of descriptor %d, which is not open", call, fd);
    return &fds[fd];
}

int open_fds(void)
{
    int n = 0;

    for (int fd = 3; fd < fds_end; fd++)
        n += fds[fd].kind != UNUSED;
    return n;
}

void lacks_room(void)
{
    w.room_lacked = true;
    w.lacked_at = w.now;
}

WRAP(int, dup, int fd)
{
    get_fd(fd, "dup()");
    return new_fd(OTHER);
}

int __real_fcntl64(int fd, int command, ...);

int __wrap_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...)
{
    if (fd < 3)
        return __real_fcntl64(fd, command);
    get_fd(fd, "fcntl()");
    if (command != F_DUPFD_CLOEXEC)
        return 0;
    int spare = new_fd(OTHER); /* of reply_keep_spare(): without it none is accepted */
    if (spare < 0)
        lacks_room();
    return spare;
}

WRAP(int, eventfd, unsigned first, int flags)
{
    int fd = new_fd(AN_EVENTFD);

    (void)flags;
    if (fd >= 0)
        fds[fd].count = first;
    return fd;
}

ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __real_read(int fd, void *bytes, size_t len);

WRAP(ssize_t, write, int fd, const void *bytes, size_t len)
{
    uint64_t add;

    if (fd < 3)
        return __real_write(fd, bytes, len);
    memcpy(&add, bytes, sizeof add);
    get_fd(fd, "write()")->count += add;
    tell(fd);
    return (ssize_t)len;
}

WRAP(ssize_t, read, int fd, void *bytes, size_t len)
{
    struct fd *f = get_fd(fd, "read()");

    step();
    if (f->count == 0) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(bytes, &f->count, sizeof f->count);
    f->count = 0;
    return (ssize_t)len;
}

int __real_getrlimit64(int which, struct rlimit *limit);
WRAP(int, getrlimit64, int which, struct rlimit *limit)
{
    if (which != RLIMIT_NOFILE)
        return __real_getrlimit64(which, limit);
    limit->rlim_cur = limit->rlim_max = (rlim_t)w.fd_limit;
    return 0;
}

int __real_setrlimit64(int which, const struct rlimit *limit);
WRAP(int, setrlimit64, int which, const struct rlimit *limit)
{
    return which != RLIMIT_NOFILE ? __real_setrlimit64(which, limit) : 0;
}

int clients_most(void)
{
    int files = w.fd_limit / 4 < 1024 ? w.fd_limit / 4 : 1024;
    int others = w.fd_limit / 8 < 64 ? w.fd_limit / 8 : 64;

    return strcmp(w.server, "15-slashdot") == 0 ? w.fd_limit - files - others : FDS;
}

/* ---- memory */

static bool memory_fails(void)
{
    if (!fails(w.memory_fails))
        return false;
    w.shortage = w.steps;
    if (w.served != NULL)
        w.served->excuse = "memory";
    TRACE("no memory");
    errno = ENOMEM;
    return true;
}

void *__real_malloc(size_t size);
WRAP(void *, malloc, size_t size)
{
    void *at = memory_fails() ? NULL : __real_malloc(size);

    memory.blocks += at != NULL;
    return at;
}

void *__real_calloc(size_t number, size_t size);
WRAP(void *, calloc, size_t number, size_t size)
{
    void *at = memory_fails() ? NULL : __real_calloc(number, size);

    memory.blocks += at != NULL;
    return at;
}

void *__real_realloc(void *old, size_t size);
WRAP(void *, realloc, void *old, size_t size)
{
    void *at = memory_fails() ? NULL : __real_realloc(old, size);

    memory.blocks += at != NULL && old == NULL;
    return at;
}

void __real_free(void *at);
WRAP(void, free, void *at)
{
    memory.blocks -= at != NULL;
    __real_free(at);
}

void *__real_mmap64(void *at, size_t size, int rights, int flags, int fd, off_t offset);
WRAP(void *, mmap64, void *at, size_t size, int rights, int flags, int fd, off_t offset)
{
    if (memory_fails())
        return MAP_FAILED;
    memory.maps++;
    return __real_mmap64(at, size, rights, flags, fd, offset);
}

int __real_munmap(void *at, size_t size);
WRAP(int, munmap, void *at, size_t size)
{
    memory.maps--;
    return __real_munmap(at, size);
}

WRAP(int, malloc_trim, size_t pad)
{
    (void)pad;
    return 0;
}

/* ---- the signal to stop */

static void (*on_term)(int), (*on_alarm)(int);

WRAP(int, sigaction, int signum, const struct sigaction *action, struct sigaction *old)
{
    (void)old;
    if (signum == SIGTERM)
        on_term = action->sa_handler;
    if (signum == SIGALRM)
        on_alarm = action->sa_handler;
    return 0;
}

WRAP(unsigned, alarm, unsigned seconds)
{
    alarm_at = seconds > 0 ? w.now + seconds * S : NEVER;
    due(alarm_at);
    return 0;
}

_Noreturn void __wrap__exit(int status);
_Noreturn void __wrap__exit(int status)
{
    TRACE("ended by the alarm, status %d", status);
    end_world();
}

bool signal_due(void)
{
    if (w.phase == STOPPING && stop_at == NEVER) {
        stop_at = w.now + pick(30) * MS;
        due(stop_at);
    }
    if (w.now >= alarm_at) {
        alarm_at = NEVER;
        on_alarm(SIGALRM);
    }
    if (w.now < stop_at || w.told)
        return false;
    w.told = true;
    TRACE("SIGTERM");
    for (int fd = 3; fd < fds_end; fd++)
        if (fds[fd].kind == A_SIGNALFD) { /* blocked: it is read from there */
            fds[fd].count = 1;
            tell(fd);
            return false;
        }
    on_term(SIGTERM);
    return true;
}
