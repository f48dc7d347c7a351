#include "die.h"
#include "spawn_ways.h"

pid_t spawn_by_posix_spawn(const char *program)
{
    die(EXIT_UNSUPPORTED, "%s: this C library has no posix_spawn()", program);
}
