/*
 * want.h: what a connection that never waits returns when it cannot go on.
 *
 * WANT_READ   recv() has just returned EAGAIN: call again when the socket is readable. A connection
 *             that waits for the disk returns this, too: call again when its job is over.
 * WANT_WRITE  send() has just returned EAGAIN: call again when the socket is writable. One send()
 *             that took less than it was given is no reason to wait: the next may take more.
 * WANT_AGAIN  there is more to do, after the turns of others: call again without waiting for the
 *             socket, which may report nothing new
 * WANT_CLOSE  close it, after all events of this wait are handled: one may still hold its pointer
 *
 * So these work with events that are reported as long as they hold (level-triggered) and with
 * events that are reported once (edge-triggered).
 */
#ifndef WANT_H
#define WANT_H

enum want { WANT_READ, WANT_WRITE, WANT_AGAIN, WANT_CLOSE };

#endif
