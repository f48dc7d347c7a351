/*
 * With the first pthread_create() dietlibc makes a process that starts all threads, and a pipe to
 * it. Without descriptors for the pipe it ends the program, with status 42. While we serve,
 * descriptors may run out. So the first thread is started before, and does nothing.
 */
#include "04-threads/first_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#ifdef __dietlibc__
static void *end_at_once(void *arg)
{
    return arg;
}

int first_thread(void)
{
    pthread_t thread;

    errno = pthread_create(&thread, NULL, end_at_once, NULL);
    if (errno == 0)
        errno = pthread_join(thread, NULL);
    return errno == 0 ? 0 : -1;
}
#else
int first_thread(void)
{
    return 0;
}
#endif
