/*
 * clients.h: the clients of a server that waits for all of them at once: which have more to do, are
 * overdue, are to be ended. server.c tells the kernel about a client, and waits. For one thread; no
 * call here waits. A pass of the loop:
 *
 *     clients_stop()            if the server is to stop
 *     clients_timeout_ms()      how long to wait at most; the process sleeps nowhere else
 *     clients_handle()          for the clients that are ready
 *     clients_next_again()      ... and those that had more to do before the wait
 *     clients_accept()
 *     clients_next_overdue()    clients_handle(c, conn_expire), which never changes c->want
 *     clients_next_ended()      conn_end(), then clients_free(). Only here: with kqueue a later
 *                               event of this wait may hold the same pointer
 */
#ifndef CLIENTS_H
#define CLIENTS_H

#include <stdbool.h>

#include "05b-nonblocking/conn.h"
#include "list.h"

#define EVENTS 256 /* that one wait may report */

/* A client is in one list: that of its state (conn.h), AGAIN for another turn, or ENDED. */
enum client_list { AGAIN = STATES, ENDED, LISTS };

struct client {
    struct conn conn;   /* first: 12 and 15 get a struct client from its address */
    enum want want : 2; /* WANT_READ or WANT_WRITE: what the kernel is to watch for */
    unsigned list : 3;  /* enum client_list */
    int place;          /* the server's own: an index (07), registered or not (15) */
    struct list node;   /* in that list */
};

/* Connections wait to be accepted. The server sets it when the listening socket is readable. */
extern bool clients_pending;

/* Accepts at most ACCEPTS of them. begin() registers each client and handles it a first time, since
 * its request may be there; if it cannot be registered, clients_refuse(). */
void clients_accept(int listen_fd, const struct options *o, void (*begin)(struct client *c));

/* Takes over fd, which must not block. Without memory it refuses the client, closes fd and returns
 * NULL. */
struct client *clients_add(int fd, const struct options *o);

/* Answers 503 to a client that cannot be registered; closes and frees it. */
void clients_refuse(struct client *c);

/* Calls turn(): conn_handle() or conn_expire(); in 16, what resumes the coroutine. Returns true if
 * c->want has changed. Does nothing if c is in AGAIN or ENDED: the loop comes to it. */
bool clients_handle(struct client *c, enum want (*turn)(struct conn *c));

/* The next client for this pass, or NULL; call it until it returns NULL. clients_next_overdue() and
 * clients_next_ended() return the same client again until it is handled, or freed. */
struct client *clients_next_again(void);
struct client *clients_next_overdue(void);
struct client *clients_next_ended(void);

void clients_end(struct client *c);  /* marks it: closed and freed at the end of this pass */
void clients_free(struct client *c); /* after conn_end(), which closes */
int clients_count(void);

/*
 * Makes room for a new client by ending one, the first of these that there is:
 *  1. READING for at least `ms`, the longest first;
 *  2. SENDING, its present 64 KiB begun a second ago or more, less than 1 MiB of this reply out;
 *  3. LINGERING for a second, or its last reply has arrived.
 * Never one that waits for the disk or for its turn. ROOM: one was ended. SOON: 2 or 3 may apply
 * before the shortage has lasted for two seconds. NONE: they cannot, or it has lasted so long.
 */
enum room { ROOM, SOON, NONE };
enum room clients_make_room(int ms);

/* If `most` clients are here and there may be room SOON: accepts none for a while, returns true. */
bool clients_pause_if_room_soon(int most);

/* clients_pause(): accepts none for ACCEPT_PAUSE_MS. clients_make_room_or_pause() is for when
 * descriptors or memory have run out: it calls clients_make_room(ms), and pauses if none ended. */
void clients_pause(void);
enum room clients_make_room_or_pause(int ms);
bool clients_may_accept(void);

/* How long to wait at most; -1: until an event. Call it once a pass, just before the wait: clients
 * that come to AGAIN later have their turn in the next pass, and those whose deadline comes later
 * are overdue in the next pass, when a wait has looked at them. */
int clients_timeout_ms(void);

/* After the signal to stop; may be called more than once. No client is accepted any more, and each
 * gets a turn: requests that have come are answered, idle connections end. */
void clients_stop(void);

#endif
