/*
 * port-bind: what does it cost to get a port, when many are in use?
 *
 * Shows: sockets are bound until the ports are used up from which the kernel chooses, `in_use` at
 * the time of each line. bind_ns is bind() to port 0, connect_ns the connect() that follows it, to
 * a listening socket on loopback, total_ns both:
 *   ipv4, ipv6  bind() of any address, no connect()
 *   early       bind() of 127.0.0.1, then connect()
 *   late        the same with IP_BIND_ADDRESS_NO_PORT: only connect() chooses the port. One port
 *               does for several connections, if they go to different addresses: there are
 *               DESTINATIONS of them, in turn
 * A port that is refused is the last line, with its errno.
 * The kernel starts at a port that it draws, and takes every other one from there: first the odd
 * ports (of a range that begins with an even one), as connect() prefers the others. Only when it
 * has been round does it look at the even ones. So when all the odd ports are in use, after half of
 * the range, each bind() walks over all of them first. Source: inet_csk_find_open_port() in
 * net/ipv4/inet_connection_sock.c, __inet_hash_connect() in net/ipv4/inet_hashtables.c, Linux 6.18;
 * ip_local_port_range and IP_BIND_ADDRESS_NO_PORT in ip(7).
 * With -k 51 only every 51st port is the kernel's choice, and has a line. The others are bound by
 * number, which takes no search: we draw them in its way, so those in use lie as they would
 * had it chosen them all. (All connections of `late` are made.)
 * It runs in a network of its own, with the range that a new one has. Each PART of the sockets is
 * handed to a child process that sleeps, so that ulimit -n may be low.
 * Needs: Linux; a network namespace; room for a process for each PART ports.
 * Run:   port-bind -k 51 ipv4
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "children.h"
#include "die.h"
#include "micro.h"

/*
 * Moves this process, and those it will make, into a network namespace with nothing but loopback,
 * which ends with the last of them. Root can have one, and a user where user namespaces are
 * allowed; without, it dies with EXIT_UNSUPPORTED.
 */
static void own_network(void);

/* The ports from which the kernel chooses, in that network: *low to *high. -1 with errno. */
static int port_range(int *low, int *high);

/* bind() to port 0 gives this socket its address only, connect() the port; -1 with errno. */
static int bind_address_only(int fd);

/* dietlibc does not know all of it. */
#if defined(__linux__) && !defined(__dietlibc__)

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd == -1)
        die_errno("socket");
    if (ioctl(fd, SIOCGIFFLAGS, &request) == -1)
        die_errno("ioctl SIOCGIFFLAGS");
    request.ifr_flags |= IFF_UP;
    if (ioctl(fd, SIOCSIFFLAGS, &request) == -1)
        die_errno("ioctl SIOCSIFFLAGS");
    if (close(fd) == -1)
        die_errno("close");
}

static void own_network(void)
{
    int users = geteuid() == 0 ? 0 : CLONE_NEWUSER;
    if (unshare(CLONE_NEWNET | users) == -1)
        die(EXIT_UNSUPPORTED, "no network namespace: %s", strerror(errno));
    loopback_up();
}

static int port_range(int *low, int *high)
{
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
    if (file == NULL)
        return -1;
    int count = fscanf(file, "%d %d", low, high);
    if (fclose(file) == EOF)
        return -1;
    errno = EINVAL;
    return count == 2 && 0 < *low && *low < *high && *high < 65536 ? 0 : -1;
}

static int bind_address_only(int fd)
{
    const int on = 1;
    return setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
}

#else

#include <errno.h>

static void own_network(void)
{
    die(EXIT_UNSUPPORTED, "Linux, with glibc or musl, is needed for a network of our own");
}

static int port_range(int *low, int *high)
{
    *low = *high = 0;
    errno = ENOSYS;
    return -1;
}

static int bind_address_only(int fd)
{
    (void)fd;
    errno = ENOSYS;
    return -1;
}

#endif

#define MAX_PORTS        200000
#define MAX_DESTINATIONS 200
#define PORTS            65536
#define PART             400  /* sockets; a connection has two */
#define SERVER_PORT      8080 /* below the range */
#define PATIENCE         300  /* seconds for the whole run */

struct way {
    const char *name;
    int family;
    bool any, connects, late;
};

struct sample {
    uint64_t bind_ns;
    uint64_t connect_ns;
    size_t in_use;
    int port;
    int error;
};

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
    } as;
    socklen_t size;
};

/* The sockets that this process has yet to hand on, and where those go. */
struct held {
    struct children children;
    size_t processes;
    size_t count;
    int fd[PART];
};

static int low, high;     /* the range: its first port, and the one behind its last */
static bool taken[PORTS]; /* which are in use */
static int unused[2];     /* how many are not, by their distance from low: even, odd */
static uint64_t drawn;    /* the state of draw() */

static struct address address_of(const struct way *way, int port)
{
    struct address at = {.size = 0};
    if (way->family == AF_INET6) {
        at.as.ipv6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
        at.as.ipv6.sin6_port = htons((in_port_t)port);
        at.size = sizeof at.as.ipv6;
    } else {
        at.as.ipv4 = (struct sockaddr_in){.sin_family = AF_INET};
        at.as.ipv4.sin_port = htons((in_port_t)port);
        at.as.ipv4.sin_addr.s_addr = htonl(way->any ? INADDR_ANY : INADDR_LOOPBACK);
        at.size = sizeof at.as.ipv4;
    }
    return at;
}

static int port_of(int fd)
{
    struct address at = {.size = sizeof at.as};
    if (getsockname(fd, &at.as.any, &at.size) == -1)
        die_errno("getsockname");
    return ntohs(at.as.any.sa_family == AF_INET6 ? at.as.ipv6.sin6_port : at.as.ipv4.sin_port);
}

static int open_socket(const struct way *way)
{
    int fd = socket(way->family, SOCK_STREAM, 0);
    if (fd == -1 && errno == EAFNOSUPPORT)
        die(EXIT_UNSUPPORTED, "%s: %s", way->name, strerror(errno));
    if (fd == -1)
        die_errno("socket");
    if (way->late && bind_address_only(fd) == -1)
        die(EXIT_UNSUPPORTED, "IP_BIND_ADDRESS_NO_PORT: %s", strerror(errno));
    return fd;
}

/* A child has all that we have; what we close then is still bound there. */
static void hand_on(struct held *held)
{
    pid_t pid = fork();
    if (pid == -1)
        die(EXIT_FAILURE, "fork: %s", strerror(errno));
    if (pid == 0)
        child_live(&held->children);
    children_await_one(&held->children);
    held->processes++;
    while (held->count > 0)
        if (close(held->fd[--held->count]) == -1)
            die_errno("close");
}

static void hold(struct held *held, int fd)
{
    held->fd[held->count++] = fd;
    if (held->count >= PART)
        hand_on(held);
}

/* An xorshift generator: 0 to below - 1, evenly enough. */
static int draw(int below)
{
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return (int)((drawn >> 16) % (uint64_t)below);
}

/* What bind() to port 0 would do; 0 if all are in use. */
static int choose_port(void)
{
    int even_size = (high - low) & ~1;
    int start = draw(even_size) | 1;
    if (unused[1] == 0)
        start--;
    for (int step = 0; step < even_size && unused[start & 1] > 0; step += 2) {
        int port = low + (start + step) % even_size;
        if (!taken[port])
            return port;
    }
    return 0;
}

static void take(int port)
{
    if (port >= low && port < high && !taken[port])
        unused[(port - low) & 1]--;
    taken[port] = true;
}

/* Binds one more port, which the kernel need not search. False if there is none. */
static bool fill(const struct way *way, struct held *held)
{
    int port = choose_port();
    struct address at = address_of(way, port);
    if (port == 0)
        return false;
    int fd = open_socket(way);
    if (bind(fd, &at.as.any, at.size) == -1)
        die_errno("bind to port %d", port);
    take(port);
    hold(held, fd);
    return true;
}

static int listen_here(const struct way *way)
{
    const struct way all = {.name = way->name, .family = AF_INET, .any = true};
    struct address at = address_of(&all, SERVER_PORT);
    int fd = open_socket(&all);
    if (bind(fd, &at.as.any, at.size) == -1)
        die_errno("bind to port %d", SERVER_PORT);
    if (listen(fd, 16) == -1)
        die_errno("listen");
    return fd;
}

static void connect_to(int fd, size_t destination, struct sample *sample)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(SERVER_PORT)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + (uint32_t)destination);
    uint64_t start = now_ns();
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == -1)
        sample->error = errno;
    sample->connect_ns = now_ns() - start;
}

static struct sample get_port(const struct way *way, struct held *held, int listener, size_t to)
{
    struct sample sample = {.bind_ns = 0};
    struct address at = address_of(way, 0);
    int fd = open_socket(way);
    uint64_t start = now_ns();
    if (bind(fd, &at.as.any, at.size) == -1)
        sample.error = errno;
    sample.bind_ns = now_ns() - start;
    if (sample.error == 0 && way->connects) {
        connect_to(fd, to, &sample);
        int accepted = sample.error == 0 ? accept(listener, NULL, NULL) : -1;
        if (accepted != -1)
            hold(held, accepted);
        else if (sample.error == 0)
            die_errno("accept");
    }
    if (sample.error == 0) {
        sample.port = port_of(fd);
        take(sample.port);
    }
    hold(held, fd);
    return sample;
}

/* Returns how many samples there are: a refusal is the last. */
static size_t measure(const struct way *way, struct sample *samples, size_t ports, size_t step,
                      size_t destinations)
{
    struct held held = {.processes = 0};
    size_t count = 0;
    int listener = way->connects ? listen_here(way) : -1;
    children_open(&held.children, PATIENCE);
    for (size_t i = 0; i < ports; i++) {
        /* One that the kernel would refuse is asked for all the same: it is the last line. */
        if (i % step != 0 && !way->late && fill(way, &held))
            continue;
        struct sample sample = get_port(way, &held, listener, i % destinations);
        sample.in_use = i;
        if (i % step == 0 || sample.error != 0)
            samples[count++] = sample;
        if (sample.error != 0)
            break;
    }
    children_end(&held.children, held.processes);
    return count;
}

static void print_samples(const struct sample *samples, size_t count)
{
    puts("in_use\tport\tbind_ns\tconnect_ns\ttotal_ns\terror");
    for (size_t i = 0; i < count; i++) {
        const struct sample *sample = &samples[i];
        printf("%lu\t%d\t%llu\t", (unsigned long)sample->in_use, sample->port,
               (unsigned long long)sample->bind_ns);
        if (sample->connect_ns != 0)
            printf("%llu", (unsigned long long)sample->connect_ns);
        else
            putchar('-');
        printf("\t%llu\t%s\n", (unsigned long long)(sample->bind_ns + sample->connect_ns),
               error_name(sample->error));
    }
    samples_finish();
}

static const struct way *way_named(const char *name)
{
    static const struct way ways[] = {
        {"ipv4", AF_INET, true, false, false},
        {"ipv6", AF_INET6, true, false, false},
        {"early", AF_INET, false, true, false},
        {"late", AF_INET, false, true, true},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

int main(int argc, char *argv[])
{
    struct number_option options[] = {
        {'n', "PORTS", 1, MAX_PORTS, MAX_PORTS, 0},
        {'k', "STEP", 1, MAX_PORTS, 1, 0},
        {'d', "DESTINATIONS", 1, MAX_DESTINATIONS, 1, 0},
    };
    const struct command_line line = {options, 3, "ipv4|ipv6|early|late", 1, 1};
    char **words = read_command_line(argc, argv, &line);
    size_t ports = options[0].value, step = options[1].value;
    struct sample *samples = samples_new(ports / step + 2, sizeof *samples);

    const struct way *way = way_named(words[0]);
    if (way == NULL)
        refuse(&line);
    own_network();
    if (port_range(&low, &high) == -1)
        die_errno("ip_local_port_range");
    high++;
    unused[0] = unused[1] = (high - low) / 2;
    drawn = now_ns() | 1;
    size_t count = measure(way, samples, ports, step, options[2].value);
    print_samples(samples, count);
    free(samples);
    return EXIT_SUCCESS;
}
