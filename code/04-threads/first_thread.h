/* first_thread.h: what a C library must do once before there can be threads. */
#ifndef FIRST_THREAD_H
#define FIRST_THREAD_H

/* Called once at the start, while the signals are blocked that only main may get. Returns 0, or -1
 * with errno. */
int first_thread(void);

#endif
