/*
 * want.h: what a connection that never waits returns when it cannot go on.
 *
 * WANT_READ   recv() has just returned EAGAIN: the socket is empty
 * WANT_WRITE  send() has just returned EAGAIN: the socket is full (a short count does not prove it)
 * WANT_AGAIN  there is more to do, after the turns of others: call again without waiting for the
 *             socket, which may report nothing new
 * WANT_CLOSE  close it; but not before the end of the batch of events at hand, which may name it
 *             once more
 *
 * So these work with events that are reported as long as they hold (level-triggered) and with
 * events that are reported once (edge-triggered).
 */
#ifndef WANT_H
#define WANT_H

enum want { WANT_READ, WANT_WRITE, WANT_AGAIN, WANT_CLOSE };

#endif
