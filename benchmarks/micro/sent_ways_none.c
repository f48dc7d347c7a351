#include "sent_ways.h"

send_fn *sent_way(const char *name)
{
    (void)name;
    return NULL;
}
