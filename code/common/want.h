/*
 * want.h: what a connection that never waits says when it has gone on as far as it can.
 *
 * WANT_READ   recv() has just given EAGAIN: nothing that has come is left in the socket
 * WANT_WRITE  send() has just given EAGAIN; that it took less than it was given is no proof yet
 * WANT_AGAIN  there is more to do, but others shall have their turn: call again without waiting for
 *             the socket, which may have nothing new to tell
 * WANT_CLOSE  it is over, and is to be closed; but not before the end of the batch of events at
 *             hand, in which it may be named once more
 *
 * So it makes no difference whether the kernel tells that there is something to read for as long as
 * there is (level-triggered), or once, when it comes (edge-triggered).
 */
#ifndef WANT_H
#define WANT_H

enum want { WANT_READ, WANT_WRITE, WANT_AGAIN, WANT_CLOSE };

#endif
