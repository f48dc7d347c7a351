#include "open_below.h"

int open_below(int root, const char *path)
{
    return open_below_walk(root, path);
}
