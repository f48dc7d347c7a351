#include <sys/types.h>

#include "10-kqueue/closing.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/event.h>

#ifdef LIBKQUEUE
/* EV_RECEIPT: no event is taken. Errors are ignored: a filter that was not there is no fault. */
void before_close(int queue, int fd)
{
    struct kevent gone[2], answers[2];

    EV_SET(&gone[0], (uintptr_t)fd, EVFILT_READ, EV_DELETE | EV_RECEIPT, 0, 0, NULL);
    EV_SET(&gone[1], (uintptr_t)fd, EVFILT_WRITE, EV_DELETE | EV_RECEIPT, 0, 0, NULL);
    (void)!kevent(queue, gone, 2, answers, 2, NULL);
}
#else
void before_close(int queue, int fd)
{
    (void)queue;
    (void)fd;
}
#endif
