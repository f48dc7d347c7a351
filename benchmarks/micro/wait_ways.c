#include "wait_ways.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/select.h>

#include "die.h"
#include "micro.h"

#define WORD_BITS ((int)(CHAR_BIT * sizeof(unsigned long)))

/*
 * The bit maps of select(). An fd_set has room for FD_SETSIZE descriptors, 1024 with all C
 * libraries here, and FD_SET() beyond that is undefined. The kernel knows no such limit: it reads
 * and writes as many words as the first argument says. So these are as long as they have to be.
 */
static struct {
    unsigned long *wanted;
    unsigned long *found;
    int bits; /* the highest descriptor and one */
} map;

static struct {
    struct pollfd *fds;
    size_t count;
} array;

static size_t map_words(void)
{
    return ((size_t)map.bits + WORD_BITS - 1) / WORD_BITS;
}

static void select_open(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fds[i] >= map.bits)
            map.bits = fds[i] + 1;
    map.wanted = samples_new(map_words(), sizeof *map.wanted);
    map.found = samples_new(map_words(), sizeof *map.found);
    for (size_t i = 0; i < count; i++)
        map.wanted[fds[i] / WORD_BITS] |= 1UL << (fds[i] % WORD_BITS);
}

static size_t select_wait(int *ready, size_t most, size_t *calls)
{
    int left;
    size_t count = 0;
    do {
        struct timeval patience = {.tv_sec = WAIT_PATIENCE};
        memcpy(map.found, map.wanted, map_words() * sizeof *map.found);
        left = select(map.bits, (fd_set *)map.found, NULL, NULL, &patience);
        ++*calls;
    } while (left == -1 && errno == EINTR);
    if (left == -1)
        die_errno("select");
    for (int first = 0; left > 0 && count < most; first += WORD_BITS)
        for (unsigned long word = map.found[first / WORD_BITS]; word != 0 && count < most;
             word &= word - 1, left--)
            ready[count++] = first + __builtin_ctzl(word);
    return count;
}

static void poll_open(const int *fds, size_t count)
{
    array.fds = samples_new(count, sizeof *array.fds);
    array.count = count;
    for (size_t i = 0; i < count; i++)
        array.fds[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
}

static size_t poll_wait(int *ready, size_t most, size_t *calls)
{
    int left;
    size_t count = 0;
    do {
        left = poll(array.fds, array.count, WAIT_PATIENCE * 1000);
        ++*calls;
    } while (left == -1 && errno == EINTR);
    if (left == -1)
        die_errno("poll");
    for (const struct pollfd *p = array.fds; left > 0 && count < most; p++) {
        if (p->revents != 0) {
            ready[count++] = p->fd;
            left--;
        }
    }
    return count;
}

static const struct wait_way portable[] = {
    {"select", select_open, select_wait},
    {"poll", poll_open, poll_wait},
    {NULL, NULL, NULL},
};

static const struct wait_way *find(const struct wait_way *way, const char *name)
{
    while (way->name != NULL && strcmp(way->name, name) != 0)
        way++;
    return way->name != NULL ? way : NULL;
}

const struct wait_way *wait_way_named(const char *name)
{
    const struct wait_way *way = find(portable, name);
    if (way == NULL)
        way = find(system_wait_ways, name);
    return way != NULL ? way : find(kqueue_wait_ways, name);
}
