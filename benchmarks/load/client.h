/*
 * A measured client: one of the -c parallel ones. It has at most one connection and at most one
 * request at a time.
 */
#ifndef HAMMER_CLIENT_H
#define HAMMER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "reply.h"
#include "url.h"

struct engine;

enum client_state {
    CLIENT_FREE,       /* no request; perhaps an idle connection */
    CLIENT_CONNECTING, /* from here to READING a request is in flight */
    CLIENT_SENDING,
    CLIENT_READING,
    CLIENT_LINGERING, /* reply complete; the server has announced that it will close */
    CLIENT_RESTING    /* after a failure, so that a dead server is not hammered in a spin */
};

struct client {
    enum watch_role role; /* first: see clock.h */
    enum client_state state;
    int fd; /* -1: none */
    uint32_t watched;
    uint32_t endpoint; /* of the connection */
    uint32_t sent;     /* bytes of the request */
    bool used;         /* the connection has served a request before this one */
    struct url *url;
    uint64_t intended;
    uint64_t start;
    uint64_t connected;  /* 0: on an old connection, or not yet */
    uint64_t first_byte; /* 0: not yet */
    uint64_t free_since;
    uint64_t good; /* measured fetches, for the fairness between clients */
    struct reply reply;
    struct deadline deadline;
    struct client *next_free;
};

void client_init(struct client *client);

/* The list of free clients: first in, first out, so that all connections are used alike. */
void client_add_free(struct engine *engine, struct client *client);
struct client *client_take_free(struct engine *engine);

/* The client has no request: gives it the next one, or puts it among the free clients. */
void client_next(struct engine *engine, struct client *client, uint64_t now);

/* Gives this request to a client that is free and in no list. */
void client_begin(struct engine *engine, struct client *client, uint64_t intended, uint64_t now);

void client_on_event(struct engine *engine, struct client *client, uint32_t events);

/* Its request has taken too long, or its server has not closed as announced. */
void client_on_timeout(struct engine *engine, struct client *client, uint64_t now);

bool client_in_flight(const struct client *client);
void client_free(struct client *client);

#endif
