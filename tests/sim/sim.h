/*
 * sim.h: the parts of the simulated world, and what they tell each other. sim.c says what it is
 * for.
 *
 *     sim.c      draws worlds, runs each in a process, cuts a failing one short, prints its end
 *     kernel.c   time, chance, descriptors, memory: and what must be so at the end
 *     net.c      sockets: recv(), send(), close() ...
 *     waits.c    epoll, poll, select; kqueue.c: kevent()
 *     files.c    a folder with files; jobs.c: the disk and the threads that wait for it (12, 15)
 *     peers.c    the clients, good and bad, and what each of them must be answered
 *     worker.c   in place of the master of 15-slashdot
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* A function that the linker puts in the place of another: all calls of name() come here, and
 * __real_name() is the one it replaces (ld(1), --wrap). */
#define WRAP(type, name, ...)                                                                      \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

#define MS    1000LL /* all times are microseconds */
#define S     (1000 * MS)
#define NEVER (1LL << 62)

#define PEERS   40
#define SOCKETS 96
#define FDS     1024
#define OUT_MAX (256 * 1024) /* bytes on the way to a client, a power of two */
#define IN_MAX  16384

/* ---- kernel.c */

/*
 * CHAOS: clients come, and what can go wrong goes wrong. CALM: no client comes and nothing fails,
 * until the server is alone. LAST: some clients more. STOPPING: after the signal.
 */
enum phase { CHAOS, CALM, LAST, STOPPING };

struct world {
    const char *server; /* "09-epoll" */
    uint64_t seed;
    bool traced;
    enum phase phase;
    long steps;     /* calls of the server */
    long chaos_for; /* so many of them */
    long long now;
    long long next_due; /* no part of the world does anything before */
    int timeout_s;      /* -t */
    int fd_limit;
    int memory_fails, calls_fail; /* one call in so many; 0: none */
    int cold;                     /* percent of what is asked of the disk that is not in memory */
    bool disk_dies, siege;
    int peers_most;
    long shortage;    /* the last step at which descriptors, memory or the disk failed */
    bool room_lacked; /* since the last wait: accept() had no descriptor, or all places are taken */
    long long lacked_at; /* and when that was last so */
    struct sock *served; /* whose conn_handle() runs */
    bool waited;         /* the server is set up */
    bool told;           /* of the signal to stop */
};
extern struct world w;

/* Chance: the same for the same seed. */
unsigned pick(unsigned n); /* 0 to n - 1 */
bool one_in(unsigned n);
bool fails(int rate); /* in CHAOS, one in so many */

/* A fault of the server: says so, and ends the world. */
_Noreturn void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define TRACE(...)                                                                                 \
    do {                                                                                           \
        if (w.traced)                                                                              \
            trace_line(__VA_ARGS__);                                                               \
    } while (0)
void trace_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* At the beginning of each call of the server: a step, in which time passes and others act. */
void step(void);

/* The same until `until`, or for one thing that happens. False: it is later than that. */
bool pass_time(long long until);

/* After a wait: now and then another process runs first. */
void stall(void);

/* Something is to happen at `at`. */
void due(long long at);

/* Descriptors. */
enum kind {
    UNUSED,
    A_FILE,
    A_FOLDER,
    A_LISTENER,
    A_SOCKET,
    AN_EPOLL,
    AN_EVENTFD,
    A_SIGNALFD,
    OTHER
};
struct interest {
    bool there, enabled, edge, pending;
    uint32_t events;
    void *data;
};
struct fd {
    enum kind kind;
    int file;
    struct sock *sock;
    uint64_t count;        /* of an eventfd */
    struct interest epoll; /* at most one epoll watches it */
    struct interest kq[2]; /* to read, to write */
};
extern struct fd fds[FDS];
extern int fds_end;         /* all that were ever open are below */
int new_fd(enum kind kind); /* or -1, EMFILE */
/* Ends the world if it is not open. */
struct fd *get_fd(int fd, const char *call);
int open_fds(void);
void lacks_room(void);  /* for another client */
int clients_most(void); /* of 15-slashdot: by its limit of descriptors */

/* What malloc() has given and free() has not had back. */
struct memory {
    long blocks, maps;
};
extern struct memory memory;

/* ---- net.c */

enum result { NO_CALL, GAVE, GAVE_ALL_THERE_WAS, GAVE_EAGAIN };

/* A connection, from the server's end to that of the client. */
struct sock {
    bool used, accepted, closed; /* closed: by the server */
    int fd;
    struct peer *peer;        /* NULL: the client has closed */
    const char *excuse;       /* why a reply may be missing or cut */
    bool no_more;             /* ... or missing, but not cut */
    unsigned char in[IN_MAX]; /* has come and is not read */
    size_t in_len, in_room;
    long long in_at;    /* when the last of it came */
    long long in_taken; /* bytes that the server has read */
    bool in_fin, in_rst;
    unsigned char out[OUT_MAX];       /* a ring; all below count bytes from the beginning */
    long long sent, acked, taken;     /* by the server; has arrived; has been read by the client */
    long long held;                   /* of what is sent: MSG_MORE and the cork keep it back */
    bool corked, fin, fin_acked, rst; /* rst: the client will see a reset */
    bool no_space;                    /* send() said EAGAIN: tell when there is room */
    size_t room, window;              /* of the server's buffer, of the client's */
    bool frozen;                      /* the client has vanished: nothing arrives any more */
    enum result received, wrote;      /* by the last call within conn_handle() */
    long long blocked_at;             /* since when send() says EAGAIN; 0: it does not */
    long long moved_at;               /* when the client has last sent or taken something */
    long long deliver_at;
};
extern struct sock socks[SOCKETS];
extern int listen_fd;

struct sock *connect_to_server(struct peer *p);
bool is_queued(const struct sock *s);
size_t client_sends(struct sock *s, const unsigned char *bytes, size_t len);
void client_fin(struct sock *s);
void client_reset(struct sock *s);
void client_closes(struct sock *s);
size_t client_reads(struct sock *s, size_t most,
                    void (*take)(struct peer *, const unsigned char *, size_t));
bool client_sees_end(const struct sock *s); /* nothing more will come */
void sockets_act(void);
bool can_read(const struct sock *s);
bool can_write(const struct sock *s);
bool listener_ready(void);
void shut_listener(void);
int sockets_held(void); /* by the server */
struct sock *who_could_leave(void);

/* ---- waits.c, kqueue.c */
void tell(int fd); /* something new has happened to it */
extern void (*tell_kqueue)(int fd);
uint32_t ready(int fd); /* EPOLLIN ... */
void wait_begins(void);
void wait_brought(bool something);
bool signal_due(void); /* and is delivered */

/* ---- files.c */
#define FILES 13
extern const size_t file_sizes[FILES];
const unsigned char *file_bytes(int file);
void files_make(void);

/* ---- jobs.c: NULL in servers without */
extern void (*jobs_act)(void);
extern bool (*job_is_for)(int fd);
extern int (*jobs_left)(void);

/* ---- peers.c */
void peers_begin(void);
void peers_act(void);
int peers_here(void);
void peer_hears(struct peer *p); /* something has come */
void peer_was_accepted(struct peer *p);
bool peer_is_good(const struct peer *p);
bool peer_is_late(const struct peer *p); /* thinks for so long that the server may close */
const char *peer_name(const struct peer *p);

/* ---- sim.c */
_Noreturn void end_world(void);
extern long *steps_done; /* also of a world that has crashed */
int __real_clock_gettime(clockid_t id, struct timespec *t);

#endif
