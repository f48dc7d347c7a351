/* For systems without epoll. */
#include "facts.h"

struct epoll_facts epoll_facts(void)
{
    return (struct epoll_facts){NOT_HERE, NOT_HERE, NOT_HERE, NOT_HERE, NOT_HERE};
}
