"""The servers of the series as the tests see them: what each one's model promises beyond the common
contract.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """Adding a server is adding its line here, and what it is exempt from in exemptions.toml."""

    slug: str
    #: connections it serves at the same time, in the sizes that the tests try; 1: one after the
    #: other
    capacity: int
    #: the program, where its name is not the slug, and what it is always started with
    program: str = ""
    options: tuple[str, ...] = ()
    #: started by inetd, with the connection as standard input and output
    under_inetd: bool = False
    #: children a connection; their number is what the tests count
    processes_per_connection: int = 0
    #: forks a connection, as a system-call trace shows them (under inetd the forking is inetd's)
    forks_per_connection: int = 0
    #: processes, or threads beside the main one, that are there before any connection
    workers: int = 0
    #: they are there before it says that it listens, and nobody has to wait for them
    workers_first: bool = False
    #: threads a connection
    threads_per_connection: int = 0
    #: the work is done by threads of one process
    threaded: bool = False
    #: the system calls by which it waits for all its clients at once; it waits by no other
    waits: frozenset[str] = frozenset()
    #: is told once of a guest at the listening socket, and takes EAGAIN for the last word
    edge_triggered_listener: bool = False
    #: options with which one thread does all reading of files, so that calls can be counted
    one_reader: tuple[str, ...] = ()
    #: does everything by an io_uring: no system call is made on a client or a file, its sockets are
    #: no descriptors of the process, and threads of the kernel come and go
    ring: bool = False
    #: bytes that a client may be sent before the others have their turn
    turn: int = 256 * 1024
    #: descriptors that it may keep open after a connection (caches); all others are leaks
    kept_descriptors: int = 0
    #: the first process serves nobody: it keeps the workers alive, which have so many threads
    #: beside their main one
    master: bool = False
    threads_of_worker: int = 0
    #: keeps files open, and believes them for this long (seconds)
    keeps_files: float = 0.0
    #: ends the one who has been idle the longest for a guest who finds no room
    makes_room: bool = False
    #: accepts a silent guest only after a while (seconds; TCP_DEFER_ACCEPT)
    defers: float = 0.0


#: a function of the C library may be one of several calls
SELECT = frozenset({"select", "pselect6"})
POLL = frozenset({"poll", "ppoll"})
SIGNALS = frozenset({"rt_sigtimedwait"})
EPOLL = frozenset({"epoll_wait", "epoll_pwait", "epoll_pwait2"})
URING = frozenset({"io_uring_enter"})

MODELS = {
    model.slug: model
    for model in (
        Model("01-iterative", capacity=1),
        Model("02-fork", capacity=500, processes_per_connection=1, forks_per_connection=1),
        Model("02-inetd", capacity=500, under_inetd=True, processes_per_connection=1),
        Model("03-prefork", capacity=16, workers=16),
        Model("04-threads", capacity=500, threads_per_connection=1, threaded=True),
        Model("05-pool", capacity=16, workers=16, threaded=True),
        Model("05b-nonblocking", capacity=1),
        Model("06-select", capacity=500, waits=SELECT),
        Model("07-poll", capacity=500, waits=POLL),
        Model("08-sigio", capacity=500, waits=SIGNALS, edge_triggered_listener=True),
        Model("09-epoll", capacity=500, waits=EPOLL, edge_triggered_listener=True),
        Model(
            "09-epoll-edge",
            program="09-epoll",
            options=("-e",),
            capacity=500,
            waits=EPOLL,
            edge_triggered_listener=True,
        ),
        Model("10-kqueue", capacity=500, waits=EPOLL, edge_triggered_listener=True),
        Model(
            "11-sendfile",
            capacity=500,
            waits=EPOLL,
            edge_triggered_listener=True,
            turn=2 << 20,
        ),
        Model(
            "12-aio",
            capacity=500,
            workers=20,
            workers_first=True,
            threaded=True,
            one_reader=("-r", "1"),
            waits=EPOLL,
            edge_triggered_listener=True,
        ),
        Model("13-uring", capacity=500, waits=URING, ring=True),
        Model("14-owfat", capacity=500, waits=EPOLL),
        Model(
            "15-slashdot",
            capacity=500,
            options=("-w", "1"),
            workers=1,
            master=True,
            threads_of_worker=16,
            waits=EPOLL,
            edge_triggered_listener=True,
            turn=2 << 20,
            keeps_files=1.0,
            makes_room=True,
            defers=1.0,
            one_reader=("-r", "1"),
        ),
    )
}

#: The programs; one may be in the list more than once, with other options.
PROGRAMS = sorted({model.program or model.slug for model in MODELS.values()})

#: Those that accept the connections themselves.
LISTENING = [model.slug for model in MODELS.values() if not model.under_inetd]

#: Those that wait for all clients in one call.
WAITING = [model.slug for model in MODELS.values() if model.waits]

#: Of these the ones that are told what they may try, and those that are told what is done.
READY = [model.slug for model in MODELS.values() if model.waits and not model.ring]
RINGS = [model.slug for model in MODELS.values() if model.ring]

#: Those that make a process or a thread for a connection, and so have to live without one.
FORKING = [model.slug for model in MODELS.values() if model.forks_per_connection]

#: One of each way from a request to its reply, for what is tested in C already: blocking, an event
#: loop, a thread that looks files up, a ring, a library, a cache.
SHAPES = ("01-iterative", "09-epoll", "12-aio", "13-uring", "14-owfat", "15-slashdot")

#: Variant -> its folder in build/.
FOLDERS = {
    "glibc": "bin",
    "static": "static",
    "static-pie": "static-pie",
    "diet": "diet",
    "musl": "musl",
    "asan": "asan",
    "tsan": "tsan",
    "libkqueue": "libkqueue",
}
SANITIZED = ("asan", "tsan")
