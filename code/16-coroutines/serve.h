/*
 * serve.h: one connection, from its first request to its end, as in 01-iterative: read a request,
 * send its reply, do it again. Where the socket would block, the coroutine yields what it waits for
 * (want.h). The caller of coroutine_resume() says why the wait is over.
 */
#ifndef SERVE_H
#define SERVE_H

/* Why a wait is over. */
enum why {
    READY,    /* the socket is readable or writable, or all others have had their turn */
    TOO_LATE, /* conn.deadline has passed */
    MUST_END, /* the server ends the connection: return, and do not wait again */
};

/* The body of a coroutine (coroutine.h). `conn` is a struct conn of 05b-nonblocking, of which fd,
 * state, deadline, linger, has_read and options are used. Returns WANT_CLOSE: the caller closes. */
int serve_conn(void *conn);

#endif
