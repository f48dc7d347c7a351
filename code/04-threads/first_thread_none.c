#include "04-threads/first_thread.h"

int first_thread(void)
{
    return 0;
}
