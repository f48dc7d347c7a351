/*
 * clients.h: the clients of a server that waits for all of them at once: which have more to do, are
 * overdue, are to be ended. server.c tells the kernel about a client, and waits. For one thread; no
 * call here waits. A turn of the loop:
 *
 *     clients_stop()            if the server is to stop
 *     clients_timeout_ms()      how long to wait at most; the process sleeps nowhere else
 *     clients_handle()          for the clients that are ready
 *     clients_next_again()      ... and those that had more to do before the wait
 *     clients_accept()
 *     clients_next_overdue()    clients_handle(c, conn_timed_out)
 * clients_next_ended()      conn_end() and clients_free(). At the end of the turn, not before: a
 *                               later event of the same wait may name the client
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
    struct conn conn;   /* first */
    enum want want : 2; /* WANT_READ or WANT_WRITE: what the kernel is to watch for */
    unsigned list : 3;  /* enum client_list */
    int place;          /* for the server: where in its array it keeps the client */
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

/* Calls turn(), which is conn_handle() or conn_timed_out(). Returns true if c->want has changed. A
 * client in AGAIN or ENDED is left alone: it has its turn, or its end, later in this turn. */
bool clients_handle(struct client *c, enum want (*turn)(struct conn *c));

/* The next client for this turn, or NULL. Call each until it returns NULL. */
struct client *clients_next_again(void);
struct client *clients_next_overdue(void);
struct client *clients_next_ended(void);

void clients_end(struct client *c);  /* clients_next_ended() will return it */
void clients_free(struct client *c); /* after conn_end(), which closes */
int clients_count(void);

/*
 * Makes room for a new client by ending one: the client that has asked for nothing for the longest
 * time, if for `ms`; else the one whose reply is slowest, if that is below the rate of unsent.h;
 * else one whose last reply has not arrived within FULL_STEP_MS. Never one that waits for the disk
 * or for its turn. ROOM: one was ended. SOON: one may be within two seconds, if it does not read.
 * NONE: neither.
 */
enum room { ROOM, SOON, NONE };
enum room clients_make_room(int ms);

/* If `most` clients are here and there may be room SOON: accepts none for a while, returns true. */
bool clients_wait_for_room(int most);

/* clients_pause(): accepts none for ACCEPT_PAUSE_MS. clients_lack_room(), where descriptors or
 * memory ran out: clients_make_room(ms), and pauses if that ended none. */
void clients_pause(void);
enum room clients_lack_room(int ms);
bool clients_may_accept(void);

int clients_timeout_ms(void); /* -1: until something happens */

/* After the signal to stop; may be called more than once. No client is accepted any more, and each
 * gets a turn: requests that have come are answered, idle connections end. */
void clients_stop(void);

#endif
