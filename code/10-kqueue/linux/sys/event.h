/*
 * sys/event.h: kqueue(2) for Linux, which has none: the part that kqueue.c makes out of epoll.
 * Names and values are FreeBSD's; struct kevent is FreeBSD's without `ext`. What is not declared
 * here is not there: a program that needs it does not compile. Not for more than one thread; not to
 * be called from a signal handler. kqueue.c says the rest.
 */
#ifndef SYS_EVENT_H
#define SYS_EVENT_H

#include <stdint.h>
#include <time.h>

#define EVFILT_READ   (-1)  /* ident: a descriptor; data: bytes, or connections, that wait */
#define EVFILT_WRITE  (-2)  /* ident: a descriptor; data: bytes of room */
#define EVFILT_SIGNAL (-6)  /* ident: a signal; data: how often it came */
#define EVFILT_TIMER  (-7)  /* ident: any number; data: the period, then how often it was over */
#define EVFILT_USER   (-11) /* ident: any number; data and fflags: whatever was set */

/* flags: what to do, how to report, */
#define EV_ADD      0x0001
#define EV_DELETE   0x0002
#define EV_ENABLE   0x0004
#define EV_DISABLE  0x0008
#define EV_ONESHOT  0x0010 /* deleted after it was reported once */
#define EV_CLEAR    0x0020 /* reported again only after something new has happened: edges */
#define EV_RECEIPT  0x0040 /* report the result of this change, also when it is 0 */
#define EV_DISPATCH 0x0080 /* disabled after it was reported */
/* and what is reported. */
#define EV_ERROR 0x4000 /* data: errno of this change, or 0 */
#define EV_EOF   0x8000 /* nothing will come, or can be sent, any more; fflags: errno or 0 */

/* fflags of EVFILT_TIMER: the unit of data, milliseconds if 0. */
#define NOTE_SECONDS  0x00000001U
#define NOTE_MSECONDS 0x00000002U
#define NOTE_USECONDS 0x00000004U
#define NOTE_NSECONDS 0x00000008U

/* fflags of EVFILT_USER: how the lower 24 bits change those that are stored, and the trigger. */
#define NOTE_FFNOP      0x00000000U
#define NOTE_FFAND      0x40000000U
#define NOTE_FFOR       0x80000000U
#define NOTE_FFCOPY     0xc0000000U
#define NOTE_FFCTRLMASK 0xc0000000U
#define NOTE_FFLAGSMASK 0x00ffffffU
#define NOTE_TRIGGER    0x01000000U

struct kevent {
    uintptr_t ident;
    short filter;
    unsigned short flags;
    unsigned int fflags;
    int64_t data;
    void *udata;
};

#define EV_SET(kev, ident_, filter_, flags_, fflags_, data_, udata_)                               \
    (*(kev) = (struct kevent){.ident = (uintptr_t)(ident_),                                        \
                              .filter = (short)(filter_),                                          \
                              .flags = (unsigned short)(flags_),                                   \
                              .fflags = (fflags_),                                                 \
                              .data = (data_),                                                     \
                              .udata = (udata_)})

/* A new queue: its descriptor (close-on-exec), or -1 with errno. It can itself be polled. */
int kqueue(void);

/*
 * Applies changes[0..nchanges), then waits until there is an event or the time-out (NULL: none) is
 * over. Returns how many of events[0..nevents) were filled, 0 after the time-out or if nevents is
 * 0, or -1 with errno; EINTR: a signal came, and all changes are applied. A change that failed is
 * an event with EV_ERROR, or -1 with errno if there is no room for it; then nothing is waited for.
 */
int kevent(int kq, const struct kevent *changes, int nchanges, struct kevent *events, int nevents,
           const struct timespec *timeout);

#endif
