/*
 * clients.h: the clients of a server that waits for all of them at once. What all such servers have
 * in common is here: who has more to do, whose time is up, who is to be ended. What they differ in,
 * how to tell the kernel about a client and how to wait, stays in their server.c.
 *
 * A turn of the loop:
 *
 *     clients_stop(), if the server is to stop
 *     wait, at most clients_patience()       the only place where the process sleeps
 *     clients_handle() for those that are ready
 *     clients_next_again(), clients_handle() as many times as clients_again() said before the wait
 *     accept, if guests wait and clients_may_come()
 *     clients_overdue()                      ends those whose time is up
 *     clients_next_ended(), clients_free()   at the end of the batch, never in its middle: an event
 *                                            further down may name the same client
 *
 * One thread; no call here waits.
 */
#ifndef CLIENTS_H
#define CLIENTS_H

#include <stdbool.h>

#include "05b-nonblocking/conn.h"
#include "options.h"

enum list { NOWHERE, AGAIN, ENDED };

/* region: client */
struct client {
    struct conn conn;
    enum want want; /* WANT_READ or WANT_WRITE: what the kernel is to watch for */
    int place;      /* for the server: where in its array it keeps the client */
    enum list list; /* of those that want another turn, or of those that have ended */
    struct client *previous, *next; /* in that list */
    struct client *older, *newer;   /* among all with the same time-out, by activity */
};
/* endregion: client */

/* Takes a connection over, just accepted. Without memory it tells the client, closes fd, and
 * returns NULL. The server then registers it, and calls clients_handle() once: its request may be
 * there. */
struct client *clients_add(int fd, const struct options *o);

/* The same for an fd that does not block already: conn_adopt(). */
struct client *clients_adopt(int fd, const struct options *o);

/* For one that cannot be registered: tells it, closes the connection, frees it, all at once. */
void clients_refuse(struct client *c);

/* Lets a client go on as far as it can. True if it now waits for something else than before
 * (c->want). One that has ended or has its turn ahead is left alone. */
bool clients_handle(struct client *c);

/* How many want another turn without waiting; and the first of them, NULL if there is none. */
int clients_again(void);
struct client *clients_next_again(void);

/* Ends a client at the end of the batch. */
void clients_end(struct client *c);
void clients_overdue(void);

/* The first that has ended, NULL if there is none; to be forgotten by the server, then freed, which
 * closes the connection. */
struct client *clients_next_ended(void);
void clients_free(struct client *c);

int clients_count(void);

/* Ends, at the end of the batch, whoever has been the longest without asking for anything that
 * could be answered. False if all are being answered. */
bool clients_make_room(void);

/* Milliseconds to wait at most, -1: until something happens. With `guests`, connections wait to be
 * accepted. */
int clients_patience(bool guests);

/* accept() failed for want of descriptors or memory: makes room for the pending connection. If
 * nobody can be sent away for it, returns false, and the server may not accept for a while. */
bool clients_lack_room(void);
bool clients_may_come(void);

/* After the signal to stop: closes the listening socket (stop_listening()), and lets each client
 * go on once more. What has been asked for is answered, and who asks for nothing is ended:
 * conn_stop(). (Not shutdown(SHUT_RD): on the BSDs that throws away what has come and was not
 * read.) May be called often. */
void clients_stop(void);

#endif
