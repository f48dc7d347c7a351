/*
 * own_network.h: a network that nobody else is in, so that ports may be used up there, and what
 * else of port-bind is Linux's own.
 */
#ifndef OWN_NETWORK_H
#define OWN_NETWORK_H

/*
 * Moves this process, and those it will make, into a network namespace with nothing but loopback,
 * which ends with the last of them. Root can have one, and a user where user namespaces are
 * allowed; without, it dies with EXIT_UNSUPPORTED.
 */
void own_network(void);

/* The ports from which the kernel chooses, in that network: *low to *high. -1 with errno. */
int port_range(int *low, int *high);

/* bind() to port 0 gives this socket its address only, connect() the port; -1 with errno. */
int bind_address_only(int fd);

#endif
