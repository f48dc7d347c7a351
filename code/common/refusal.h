/* refusal.h: what a client is told for whom there is no process, no thread, no room. */
#ifndef REFUSAL_H
#define REFUSAL_H

/* Tells a client that there is nobody to serve it, 503, without ever waiting for it. The caller
 * closes fd. */
void serve_refusal(int fd);

#endif
