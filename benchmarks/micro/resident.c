#include "resident.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "die.h"

#define HUGE_PAGE (2 * MIB) /* on x86-64 and, with pages of 4 KiB, on aarch64 */

char *resident_reserve(size_t bytes, enum page_size size)
{
    size_t room = bytes + HUGE_PAGE;
    char *start = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        die_errno("mmap of %lu MiB", (unsigned long)(room / MIB));
    start += (HUGE_PAGE - (uintptr_t)start % HUGE_PAGE) % HUGE_PAGE;
    if (bytes == 0)
        return start;
    /* Else /sys/kernel/mm/transparent_hugepage/enabled decides, and each machine says otherwise. */
    if (madvise(start, bytes, size == HUGE_PAGES ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) == 0)
        return start;
    if (errno != EINVAL)
        die_errno("madvise");
    if (size == HUGE_PAGES)
        die(EXIT_UNSUPPORTED, "this kernel was built without transparent huge pages");
    return start;
}

void resident_fill(char *start, const char *end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (volatile char *byte = start; byte < end; byte += page)
        *byte = 1;
}

size_t resident_next(size_t size, size_t first)
{
    return size == 0 ? first : 2 * size;
}
