/* refusal.h: the reply for a client if there is no process, no thread or no room to serve it. */
#ifndef REFUSAL_H
#define REFUSAL_H

/* Sends 503 to a client that cannot be served, without ever waiting for it. The caller
 * closes fd. */
void serve_refusal(int fd);

#endif
