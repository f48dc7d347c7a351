"""Which tests run on which servers, in which build variants, and why. This is the one place.

A test says what it checks (`@contract("range", "head")`: lines of LINES) and of which kind it is
(`pytestmark = kind("model")`, or `contract(..., of="model")`: one of KINDS). A kind says where it
runs. `contract(..., servers=...)` narrows that to the servers a test is about. EXEMPTIONS lists who
need not keep a line.
"""

import functools
import zlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

# ---- variants

#: Variant -> its folder in build/.
FOLDERS = {"glibc": "bin"} | {
    name: name for name in ("static", "static-pie", "diet", "musl", "asan", "tsan", "libkqueue")
}
SANITIZED = ("asan", "tsan")
REST = ("musl", "asan")
COMMON = ("glibc", "static", "static-pie", "diet", *REST)
WITH_TSAN = (*COMMON, "tsan")

# ---- servers

#: A function of the C library may be one of several calls.
SELECT = frozenset({"select", "_newselect", "pselect6", "pselect6_time64"})
POLL = frozenset({"poll", "ppoll", "ppoll_time64"})
SIGNALS = frozenset({"rt_sigtimedwait", "rt_sigtimedwait_time64"})
EPOLL = frozenset({"epoll_wait", "epoll_pwait", "epoll_pwait2"})
URING = frozenset({"io_uring_enter"})


@dataclass(frozen=True)
class Model:
    """What a server's model promises beyond the contract. A new server is a line in MODELS."""

    slug: str
    capacity: int  #: connections at the same time, in the sizes that the tests try; 1: one by one
    variants: tuple[str, ...] = COMMON  #: that it is built in: code/module.mk
    program: str = ""  #: where its name is not the slug
    options: tuple[str, ...] = ()  #: that it is always started with
    #: started by inetd, with the connection as standard input and output; then inetd forks
    under_inetd: bool = False
    processes_per_connection: int = 0
    threads_per_connection: int = 0
    #: processes, or threads beside the main one, that are there before any connection
    workers: int = 0
    #: they are there before it says that it listens, and nobody has to wait for them
    workers_first: bool = False
    threaded: bool = False  #: the work is done by threads of one process
    #: the system calls by which it waits for all its clients at once; it waits by no other
    waits: frozenset[str] = frozenset()
    #: is told once of a new connection, and takes EAGAIN for the last word
    edge_triggered_listener: bool = False
    #: options with which one thread does all reading of files, so that calls can be counted
    one_reader: tuple[str, ...] = ()
    #: does everything by an io_uring: no system call is made on a client or a file, its sockets are
    #: no descriptors of the process, and threads of the kernel come and go
    ring: bool = False
    turn: int = 256 * 1024  #: bytes that a client may be sent before the others have their turn
    #: the first process serves nobody: it keeps the workers alive, which have so many threads
    #: beside their main one
    master: bool = False
    threads_of_worker: int = 0
    looks_up_by: int = 0  #: threads of a worker, besides
    keeps_files: float = 0.0  #: open, and believes them for so many seconds
    #: ends the one who has been idle the longest for a client who finds no room
    makes_room: bool = False
    defers: float = 0.0  #: seconds after which it accepts a silent client (TCP_DEFER_ACCEPT)


Many = functools.partial(Model, capacity=500)
OnEpoll = functools.partial(Many, waits=EPOLL, edge_triggered_listener=True)
MODELS = {
    model.slug: model
    for model in (
        Model("01-iterative", capacity=1),
        Many("02-fork", processes_per_connection=1),
        Many("02-inetd", under_inetd=True, processes_per_connection=1),
        Model("03-prefork", capacity=16, workers=16),
        Many("04-threads", variants=WITH_TSAN, threads_per_connection=1, threaded=True),
        Model("05-pool", capacity=16, variants=WITH_TSAN, workers=16, threaded=True),
        Model("05b-nonblocking", capacity=1),
        Many("06-select", waits=SELECT),
        Many("07-poll", waits=POLL),
        Many("08-sigio", waits=SIGNALS, edge_triggered_listener=True),
        OnEpoll("09-epoll"),
        OnEpoll("09-epoll-edge", program="09-epoll", options=("-e",)),
        OnEpoll("10-kqueue", variants=("glibc", "static", "static-pie", *REST, "libkqueue")),
        OnEpoll("11-sendfile", turn=2 << 20),
        OnEpoll(
            "12-aio",
            variants=("glibc", "static", "asan", "tsan"),
            workers=20,
            workers_first=True,
            threaded=True,
            one_reader=("-r", "1"),
        ),
        Many("13-uring", variants=("glibc", "static", "static-pie", "asan"), waits=URING, ring=True),
        Many("14-owfat", variants=("glibc", "asan"), waits=EPOLL),
        OnEpoll(
            "15-slashdot",
            variants=("glibc", "static", "asan", "tsan"),
            options=("-w", "1"),
            workers=1,
            master=True,
            threads_of_worker=16,
            looks_up_by=4,
            turn=2 << 20,
            keeps_files=1.0,
            makes_room=True,
            defers=1.0,
            one_reader=("-r", "1"),
        ),
        OnEpoll("16-coroutines"),
    )
}
EVERY = tuple(MODELS)

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
FORKING = [model.slug for model in MODELS.values() if model.processes_per_connection and not model.under_inetd]
#: What `make test` looks at where a test runs on every server: one client after the other, a process or a thread for
#: each, a loop, a ring, processes with loops. CI looks at all of them, and `make test CH=` at that one.
SAMPLE = ("01-iterative", "02-fork", "05-pool", "09-epoll", "13-uring", "15-slashdot")
MANY = 8  #: a test on more servers than that has a sample


def sampled(test: str, servers: Iterable[str]) -> set[str]:
    """On which of these servers `make test` runs a test of the contract. With those of SAMPLE comes one of the others,
    not the same for each test: so each server has some, and one that does not work at all is seen.
    """
    names = sorted(set(servers))
    if len(names) <= MANY:
        return set(names)
    others = [name for name in names if name not in SAMPLE]
    return {*SAMPLE, others[zlib.crc32(test.encode()) % len(others)]}


def rows(slugs: Iterable[str], sample: Collection[str] = SAMPLE) -> list[Any]:
    """Servers for parametrize(): `make test` takes those of a sample."""
    return [pytest.param(slug, marks=[pytest.mark.others] * (slug not in sample)) for slug in slugs]


#: One of each way from a request to its reply: blocking, an event loop, a thread that looks files
#: up, a ring, a library, a cache.
SHAPES = ("01-iterative", "09-epoll", "12-aio", "13-uring", "14-owfat", "15-slashdot")

# ---- kinds of tests


@dataclass(frozen=True)
class Kind:
    servers: tuple[str, ...]
    variants: tuple[str, ...]
    why: str


KINDS = {
    "serving": Kind(
        EVERY,
        tuple(FOLDERS),
        "a short look at every kind of reply, at waiting, stopping and messages: what a C library "
        "(getopt, printf, threads, signals, time), a linker or a sanitizer could make differ",
    ),
    "model": Kind(
        EVERY,
        ("glibc", "libkqueue", *SANITIZED),
        "how it waits, keeps connections, stops, and lives with faults and hostile clients is each "
        "server's own code, in which the sanitizers may find something; a C library has no part",
    ),
    "shared": Kind(
        SHAPES,
        ("glibc", "diet", "musl", "asan"),
        "parser, replies and what keeps a file below DOCROOT are one code for all, of which "
        "tests/unit has every case. Here: that each way from a request to its reply passes them on "
        "as they are, by openat2(), a walk (dietlibc), the ring, threads, or the cache",
    ),
    "programs": Kind((), COMMON, "00-client and constant are no servers of the contract"),
}


def kind(name: str) -> pytest.MarkDecorator:
    """Marks a test, or as `pytestmark` all of a file; the mark of the test itself counts."""
    if name not in KINDS:
        raise KeyError(f"no such kind of test: {name}")
    return pytest.mark.kind(name)


# ---- the contract

LINES = {
    # ---- command line
    "usage": "-h prints usage on stdout, exit 0",
    "bad-usage": "bad usage: one line on stderr, exit 2",
    "setup-failure": "a failed set-up call: one line `NAME: call what: reason`, exit 1",
    "listening-line": "one line on stdout when it can accept: NAME: listening on http://ADDR:PORT/",
    "quiet-stdout": "nothing else goes to stdout, not with -v either",
    "port-zero": "-p 0 takes any free port",
    "address": "-a chooses the address, IPv6 too",
    "backlog": "-b: so many connections wait to be accepted",
    "one-worker": "-w 1 is accepted by all",
    "log": "-v: a log line per request on stderr; without it none",
    "docroot": "DOCROOT is what is served, . without it",
    "privileges": "-u USER: once it listens it has that user's rights, and no way back to root's",
    "inherited": "whatever state it is started in: it serves, or ends with one line and 1 or 77",
    # ---- ending
    "stop": "SIGTERM and SIGINT: stop accepting, leave no child, exit 0",
    "stop-in-flight": "... finish replies in flight",
    "stop-idle": "... without waiting for idle connections",
    "stop-grace": "... at most 5 s",
    # ---- HTTP
    "get": "GET on files below DOCROOT",
    "head": "HEAD: the same head, no body",
    "any-length": "files of any length arrive bit by bit as they are, beyond 4 GiB too",
    "index": "/ and dir/ give index.html",
    "date": "Date, right",
    "content-length": "Content-Length, right",
    "content-type": "Content-Type, by the name",
    "last-modified": "Last-Modified, right",
    "version-1.0": "HTTP/1.0 is understood, without Host too",
    "if-modified-since": "If-Modified-Since gives 304, if it is a date",
    "preconditions": "If-None-Match comes before it; If-Match and If-Unmodified-Since give 412",
    "range": "a single Range gives 206 or 416; several and malformed ones are ignored",
    "if-range": "If-Range: the range only of an unchanged file",
    "keep-alive": "1.1: the connection stays for the next request",
    "keep-alive-1.0": "1.0: it stays for those who ask with Connection: keep-alive",
    "close": "the connection is closed after a reply that says so; close is honoured",
    "pipelining": "several requests at once are answered in order, without a wait between them",
    "split": "a request may come in pieces of any size",
    "half-close": "half-close after sending is not `gone away`",
    "absolute-form": "absolute-form targets are understood",
    "query": "queries are ignored",
    "percent": "percent-encoding is resolved once",
    "400": "400 malformed",
    "host": "400: 1.1 without Host, with two, or with one that is no host; a target's, too",
    "403": "403 forbidden",
    "404": "404 not found",
    "405": "405 with Allow for a known method that is not offered",
    "414": "414 request line too long",
    "431": "431 header too long",
    "500": "500 where the file system fails: it does not say that there is no file",
    "501": "501 unknown method, or transfer coding",
    "505": "505 version",
    "body": "a request body is never mistaken for the next request",
    "drain": "after an early error the rest is drained for a bounded time: the reply survives",
    # ---- files
    "outside": "no reply for a file outside DOCROOT, by dots, encodings or links, on any kernel",
    "links-inside": "links that stay below: followed where the kernel guarantees it, else 403",
    "regular-only": "regular files only; a FIFO must not hang it",
    "file-changes": "a file that shrinks or vanishes while it is sent ends that connection only",
    # ---- faults
    "survives": "no request, peer or load may end the process",
    "sigpipe": "SIGPIPE is ignored process-wide",
    "emfile": "EMFILE is survived, and without a busy loop",
    "leaks": "no descriptor, child or other resource is left after a connection",
    "no-process": "EAGAIN from fork or pthread_create is survived",
    "accept-errors": "ECONNABORTED, EINTR and other errors of accept are survived",
    "signals": "EINTR and short writes lose nothing",
    "memory": "memory does not grow with requests or connections",
    "idle-time-out": "-t: a client that keeps the server waiting is ended",
    # ---- the disk
    "disk-wait": "a client that waits for the disk has no deadline; a disk that never answers: 503",
    "bystander": "a client that needs nothing of the disk is not held up by those that do",
    # ---- the model
    "concurrency": "silent and slow clients do not keep others from being served",
    "mechanism": "the server works by the mechanism its chapter is about",
}


Test = TypeVar("Test", bound=Callable[..., object])


def contract(*lines: str, of: str = "", servers: Iterable[str] = ()) -> Callable[[Test], Test]:
    """Marks a test with the lines it checks; with its kind and its servers if they are not those of
    its file.
    """
    unknown = [line for line in lines if line not in LINES]
    if unknown or not lines:
        raise KeyError(f"no such line of the contract: {unknown}")
    marks = [pytest.mark.contract(*lines)]
    marks += [kind(of)] if of else []
    marks += [pytest.mark.servers(*servers)] if servers else []

    def mark(test: Test) -> Test:
        for one in marks:
            test = one(test)
        return test

    return mark


# ---- who is exempt


@dataclass(frozen=True)
class Exemption:
    """must_fail: the tests of these lines are run all the same and must fail, so that an exemption
    that is no longer needed, or a test that cannot fail, is an error. Else they are skipped.
    """

    server: str
    lines: tuple[str, ...]
    must_fail: bool
    reason: str


EXEMPTIONS = (
    Exemption(
        "01-iterative",
        ("keep-alive", "keep-alive-1.0", "pipelining"),
        True,
        "closes after each reply: a client kept alive that says nothing more would hold the only server",
    ),
    Exemption(
        "01-iterative",
        ("concurrency",),
        True,
        "serves one client at a time: the negative control of the tests of concurrency",
    ),
    Exemption(
        "02-inetd",
        ("listening-line", "quiet-stdout", "port-zero", "address", "one-worker"),
        False,
        "has neither port nor listening line, and its stdout is the socket: inetd listens",
    ),
    Exemption("02-inetd", ("emfile", "accept-errors"), False, "accepts nothing: inetd does"),
    Exemption(
        "05b-nonblocking",
        ("concurrency",),
        True,
        "waits for one descriptor: the connection as a state machine, before there are many",
    ),
)
EXEMPT = {(e.server, line): e for e in EXEMPTIONS for line in e.lines}
