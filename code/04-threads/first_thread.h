/* first_thread.h: what a C library must do once before there can be threads. */
#ifndef FIRST_THREAD_H
#define FIRST_THREAD_H

/* Called at the start, with the signals blocked that threads shall not get. Returns 0, or -1 with
 * errno. */
int first_thread(void);

#endif
