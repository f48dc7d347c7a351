/*
 * clients.h: the clients of a server that waits for all of them at once: who has more to do, whose
 * time is up, who is to be ended. How to tell the kernel about a client, and how to wait, stays in
 * the server.c. One thread; no call here waits. A turn of the loop:
 *
 *     clients_stop()            if the server is to stop
 *     clients_timeout_ms()      so long the process sleeps at most, and nowhere else
 *     clients_handle()          for those that are ready
 *     clients_next_again()      ... and for those that had more to do before the wait
 *     clients_accept()
 *     clients_next_overdue()    clients_handle(), for what is due to them
 *     clients_next_ended()      at the end, never in the middle, for an event further down may name
 *                               the same client: forget it, conn_end(), clients_free()
 */
#ifndef CLIENTS_H
#define CLIENTS_H

#include <stdbool.h>

#include "05b-nonblocking/conn.h"
#include "list.h"

#define EVENTS 256 /* that one wait may report */

/* A client is in one list: in that of its state, or where it waits for another turn, or its end. */
enum client_list { AGAIN = STATES, ENDED, LISTS };

struct client {
    struct conn conn;   /* first */
    enum want want : 2; /* WANT_READ or WANT_WRITE: what the kernel is to watch for */
    unsigned list : 3;  /* enum client_list */
    int place;          /* for the server: where in its array it keeps the client */
    struct list node;   /* in that list */
};

/* Connections wait to be accepted: to be set by the server when its socket says so. */
extern bool clients_pending;

/* Accepts some of them, and gives each to begin(): which registers it and handles it for a first
 * time, because its request may be there; or says clients_refuse(). */
void clients_accept(int listen_fd, const struct options *o, void (*begin)(struct client *c));

/* Takes over a connection that does not block. Without memory it is refused: NULL. */
struct client *clients_add(int fd, const struct options *o);

/* Tells one that cannot be registered that there is no room, closes and frees it. */
void clients_refuse(struct client *c);

/* Lets it go on by turn(), conn_handle() or conn_timed_out(). True if it now waits for something
 * else than before (c->want). One that has ended or has its turn ahead is left alone. */
bool clients_handle(struct client *c, enum want (*turn)(struct conn *c));

/* The first in its list; NULL when there is none left, which ends the turn: so ask until then. */
struct client *clients_next_again(void);
struct client *clients_next_overdue(void);
struct client *clients_next_ended(void);

void clients_end(struct client *c); /* at the end of the batch */
void clients_free(struct client *c);
int clients_count(void);

/*
 * Makes room for a new client. Who leaves: the client that has asked for nothing for the longest
 * time, if that was for `ms`; else the slowest reply, if it is below the floor of unsent.h; else
 * one whose last reply has not arrived within FULL_STEP_MS. Never one that waits for the disk, and
 * none that has its turn ahead. ROOM: one has left. SOON: one may have to within two seconds, since
 * its reply waits for it. NONE.
 */
enum room { ROOM, SOON, NONE };
enum room clients_make_room(int ms);

/* Whether `most` are here and there may be room SOON: then does not accept for a while. */
bool clients_wait_for_room(int most);

/* accept() must pause: does not accept for a while. Where it lacked descriptors or memory, only if
 * clients_make_room() finds none to leave. */
void clients_pause(void);
enum room clients_lack_room(int ms);
bool clients_may_accept(void);

int clients_timeout_ms(void); /* -1: until something happens */

/* After the signal to stop, as often as one likes: nobody is accepted any more, and each client
 * goes on once: what has been asked for is answered, who asks for nothing is ended. */
void clients_stop(void);

#endif
