/* Addresses of servers and of our own, and how a connection between them is begun. */
#ifndef HAMMER_ADDRESS_H
#define HAMMER_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tally.h"

/*
 * Numeric addresses: where load may go, and where it comes from.
 *
 * No name is ever looked up ("localhost" is 127.0.0.1): an instrument must not depend on a
 * resolver, and the safety rule is about addresses, not names.
 */

/* Where to connect to. All bytes outside the address are zero, so memcmp compares two. */
struct endpoint {
    struct sockaddr_storage address;
    socklen_t length;
};

/* IPv4 dotted, IPv6 without brackets, or "localhost". False if it is none of them. */
bool endpoint_parse(struct endpoint *endpoint, const char *host, uint16_t port);

/* 127.0.0.0/8 or ::1. */
bool endpoint_is_loopback(const struct endpoint *endpoint);

/* The same address, whatever the port. */
bool endpoint_same_host(const struct endpoint *a, const struct endpoint *b);

/* Addresses to connect from, used in turn. All zero: the kernel chooses. */
struct source_list {
    struct in_addr *items; /* owned */
    size_t count;
    size_t next;
};

/*
 * "127.0.0.2,127.0.1.1-127.0.1.50": single addresses and inclusive ranges, all in 127.0.0.0/8.
 * Returns NULL, or what is wrong (static text).
 */
const char *source_list_parse(struct source_list *list, const char *text);

void source_list_free(struct source_list *list);

/* Starting a TCP connection without waiting for it. */

/*
 * Begins to connect and returns the non-blocking descriptor, or -1 with errno set. The outcome
 * shows at the first send or in dial_result(). Takes the next address of `sources` if it has
 * any. `receive_buffer` > 0 sets SO_RCVBUF (the kernel raises it to its minimum).
 */
int dial(const struct endpoint *endpoint, struct source_list *sources, int receive_buffer);

/* The outcome of a connect in progress: 0, or the errno it failed with. */
int dial_result(int fd);

/* The kind of error a failed connect counts as. */
enum fetch_error dial_error(int error);

#endif
