/*
 * master.h: the process that keeps the workers alive, and lets another program take their place
 * without a guest being turned away.
 *
 * SIGHUP starts the program anew, in a child, with the same command line and the same listening
 * sockets, which stay open all the time. Once it is ready (successor.h) that child is the master of
 * its own workers, and those of before retire: they accept no more; each reply says that it is the
 * last of its connection, and when all are gone, by that or by their time-out, they end. The first
 * master stays, for it is the process that the administrator and the system know:
 *
 *     before SIGHUP   master --- workers
 *     after it        master -+- workers that retire
 *                             +- master of the new program --- workers
 *     after the next  master -+- master that retires --- workers that retire
 *                             +- master of the new program --- workers
 */
#ifndef MASTER_H
#define MASTER_H

#include "options.h"

/* Holds the signals that the master waits for: before anybody can know that it listens. */
void master_begin(void);

/*
 * Starts o->workers processes and keeps as many alive. Returns in each of them, with its number
 * from 0; in the master it returns -1 when all have ended, after SIGTERM or SIGINT, or because it
 * was a successor and retires.
 */
int master_run(const struct options *o, char **argv, const int *fds, int sockets);

#endif
