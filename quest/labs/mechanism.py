"""Tests that a server works in the way that its lab is about, by a trace of its system calls. Each
form of a call counts that a student may choose, or that the C library makes of it: pselect for
select, clone for fork, accept4 for accept. Of the replies no test asks more than that small files
are served.
"""

import os
import re
import time
from collections.abc import Callable, Collection

import pytest

from tests.conformance import proc, tracing
from tests.conformance.matrix import EPOLL, POLL, SELECT, SIGNALS, URING, contract
from tests.conformance.process import Server, wait_until
from tests.conformance.programs import Traced
from tests.conformance.site import HELLO
from tests.conformance.tracing import Call
from tests.conformance.wire import ASK, LAST, Connection, ContractBroken

FORKS = frozenset(tracing.FORKS.split(","))
ACCEPTS = frozenset({"accept", "accept4"})
READS = frozenset({"recv", "recvfrom", "recvmsg", "recvmmsg"})
WRITES = frozenset({"send", "sendto", "sendmsg", "sendmmsg", "writev"})
SENDFILES = frozenset({"sendfile", "sendfile64"})
WAITS = SELECT | POLL | SIGNALS | EPOLL | URING
SILENT = 5  #: clients beside the one that asks
ASKED = 3
#: Seconds, whatever PATIENCE= says: calls are in the trace at once, except on a busy machine, which
#: must not cost points.
SEEN_S = 5.0
HALF = LAST[:20]
WRONG_PAGE = "another file was served"
DESCRIPTORS = re.compile(r"^\d+, \[([\d ]+)\]")
ENTRIES = re.compile(r"\], (\d+), ")
#: of poll(), and of ppoll(): at its end stands the size of a set of signals
NO_TIME = re.compile(r"\d, (0$|\{tv_sec=0, tv_nsec=0\}, )")


def demand(condition: bool, otherwise: str) -> None:
    """ContractBroken, with a reason for the student, unless the condition holds."""
    if not condition:
        raise ContractBroken(otherwise)


def in_words(names: Collection[str]) -> str:
    """`accept and read`."""
    return " and ".join(sorted(names)) or "no call"


def demand_page(client: Connection, request: bytes = ASK) -> None:
    """Demands that the server answers a request with the small page."""
    demand(client.ask(request).body == HELLO, WRONG_PAGE)


def may_sleep(call: Call) -> bool:
    """Whether a call may wait: poll() with a time-out of 0 does not."""
    return call.name in WAITS and not (call.name in POLL and NO_TIME.search(call.arguments))


def since_the_first_client(trace: tracing.Trace) -> list[Call]:
    """The calls from the first accept on; before it are those of the start. All calls, if there is
    no accept: a server with a ring makes none."""
    calls = tracing.parsed(trace.completed())
    begun = (n for n, call in enumerate(calls) if call.name in ACCEPTS and call.succeeded)
    return calls[next(begun, 0) :]


def callers(calls: Collection[Call], names: Collection[str]) -> set[int]:
    """The processes or threads that have made one of these calls, with success."""
    return {call.pid for call in calls if call.name in names and call.succeeded}


def count(calls: Collection[Call], names: Collection[str], having: str = "") -> int:
    """How many of these calls had success, with `having` in their arguments."""
    return sum(c.name in names and c.succeeded and having in c.arguments for c in calls)


def sent_to_clients(calls: Collection[Call]) -> int:
    """Bytes that sendfile() has sent on connections: one that sends nothing, or to a pipe, counts for nothing."""
    clients = {call.result for call in calls if call.name in ACCEPTS and call.succeeded}
    sent = (call for call in calls if call.name in SENDFILES and call.arguments.partition(",")[0] in clients)
    return sum(int(call.result) for call in sent if call.result.isdecimal())


# ---- one loop for all clients


def loop_of(
    server: Server, trace: tracing.Trace, kind: frozenset[str], called: str
) -> tuple[list[Call], list[Connection]]:
    """Demands that the server serves a client while others are silent, and waits for all of them by
    one kind of call alone; the calls, and the silent clients."""
    silent = server.crowd(SILENT, HALF)
    with server.connect() as c:
        for _ in range(ASKED):
            demand_page(c)
            time.sleep(0.02)
    time.sleep(server.patience.silence)

    def enough(_: object) -> bool:
        calls = since_the_first_client(trace)
        return count(calls, kind) >= ASKED

    trace.has(enough, SEEN_S)
    calls = since_the_first_client(trace)
    demand_one_loop(calls, kind, called)
    return calls, silent


def demand_one_loop(calls: Collection[Call], kind: frozenset[str], called: str) -> None:
    """Demands that one thread does all the work, and waits by this kind of call alone."""
    used = {call.name for call in calls if may_sleep(call)}
    demand(bool(used & kind), f"it waits by {in_words(used)}, not by {called}")
    demand(used <= kind, f"it waits by {in_words(used - kind)}, too, and not by {called} alone")
    demand(count(calls, kind) >= ASKED, f"it does not wait by {called} whenever nothing is to do")
    workers = callers(calls, ACCEPTS | READS | kind)
    demand(len(workers) == 1, f"{len(workers)} processes or threads serve, not one loop")
    demand(not callers(calls, FORKS), "it starts processes or threads for its clients")


def looping(traced: Traced, kind: frozenset[str], more: str = "", *options: str) -> tuple[Server, tracing.Trace]:
    """A server with these options, and a trace of what loop_of() looks at, with `more` calls."""
    names = sorted(WAITS | FORKS | ACCEPTS | READS | kind)
    return traced(",".join([*names, *filter(None, [more])]), *options)


def in_set(arguments: str) -> int:
    """How many descriptors are in the first set of a call of select()."""
    descriptors = DESCRIPTORS.match(arguments)
    return len(descriptors[1].split()) if descriptors else 0


def in_array(arguments: str) -> int:
    """How many entries a call of poll() has."""
    return int(entries[1]) if (entries := ENTRIES.search(arguments)) else 0


def most_watched(calls: Collection[Call], kind: frozenset[str], watched: Callable[[str], int]) -> int:
    """The most clients that a call of this kind waits for, as `watched` counts them."""
    return max((watched(call.arguments) for call in calls if call.name in kind), default=0)


@contract("mechanism")
@pytest.mark.servers("06-select")
def test_waits_with_select(traced: Traced) -> None:
    """select() or pselect(), with the sockets of all silent clients in its set."""
    calls, silent = loop_of(*looping(traced, SELECT), SELECT, "select()")
    all_watched = most_watched(calls, SELECT, in_set) >= len(silent)
    demand(all_watched, "select() is not asked about all clients")


@contract("mechanism")
@pytest.mark.servers("07-poll")
def test_waits_with_poll(traced: Traced) -> None:
    """poll() or ppoll(), with an entry for each silent client."""
    calls, silent = loop_of(*looping(traced, POLL), POLL, "poll()")
    all_watched = most_watched(calls, POLL, in_array) >= len(silent)
    demand(all_watched, "poll() is not asked about all clients")


@contract("mechanism")
@pytest.mark.servers("08-sigio")
def test_waits_for_signals(traced: Traced) -> None:
    """sigtimedwait() or sigwaitinfo(), for the signal that each socket was told to send."""
    calls, silent = loop_of(*looping(traced, SIGNALS, "fcntl"), SIGNALS, "sigtimedwait()")
    armed = count(calls, ("fcntl", "fcntl64"), "F_SETSIG")
    demand(armed > len(silent), "the clients' sockets are not told which signal to send")


@contract("mechanism")
@pytest.mark.servers("09-epoll")
@pytest.mark.parametrize("options", [(), ("-e",)], ids=["level", "edge"])
def test_waits_with_epoll(traced: Traced, options: tuple[str, ...]) -> None:
    """epoll_wait(), epoll_pwait() or epoll_pwait2(), of a set that each client was put into; by
    edge with -e."""
    calls, silent = loop_of(*looping(traced, EPOLL, "epoll_ctl", *options), EPOLL, "epoll_wait()")
    added = count(calls, ("epoll_ctl",), "EPOLL_CTL_ADD")
    demand(added > len(silent), "the clients are not put into the set")
    edges = count(calls, ("epoll_ctl",), "EPOLLET")
    if options:
        demand(edges > len(silent), "with -e the clients are not watched by edge")
    else:
        demand(not edges, "without -e the clients are watched by edge")


@contract("mechanism")
@pytest.mark.servers("10-kqueue")
def test_waits_with_kqueue(traced: Traced) -> None:
    """kevent(), which is made of epoll on Linux: for each event that it brings to be read it asks
    how much there is."""
    calls, _ = loop_of(*looping(traced, EPOLL, "ioctl"), EPOLL, "kevent()")
    asked = count(calls, ("ioctl",), "FIONREAD")
    demand(asked >= ASKED, "it calls no kevent() that brings what its clients have sent")


@contract("mechanism")
@pytest.mark.servers("11-sendfile")
def test_sends_with_sendfile(traced: Traced) -> None:
    """One sendfile(), at least, for each file."""
    calls, _ = loop_of(*looping(traced, EPOLL, ",".join(SENDFILES)), EPOLL, "epoll_wait()")
    sent = sent_to_clients(calls) // len(HELLO)
    demand(sent >= ASKED, f"{sent} of {ASKED} files were sent by sendfile()")


@contract("mechanism")
@pytest.mark.servers("12-aio")
def test_another_thread_reads(traced: Traced) -> None:
    """The loop may read by itself what is in memory already. Here nothing is: preadv2() with
    RWF_NOWAIT is made to say so."""
    reads = ("pread64", "preadv", "read", "readv")
    names = sorted(EPOLL | ACCEPTS | READS | {*reads, "preadv2"})
    never = "preadv2:error=EAGAIN"
    server, trace = traced(",".join(names), "-d", "threads", inject=never)
    with server.connect() as c:
        for _ in range(ASKED):
            demand_page(c)

    def readers() -> set[int]:
        calls = since_the_first_client(trace)
        size = str(len(HELLO))
        whole = {c.pid for c in calls if c.name in reads and c.result == size}
        return whole - callers(calls, READS)

    trace.has(lambda _: bool(readers()), SEEN_S)
    loop = callers(since_the_first_client(trace), EPOLL)
    demand(len(loop) == 1, f"{len(loop)} threads wait by epoll_wait(), not one loop")
    demand(bool(readers() - loop), "the loop itself reads the files")


@contract("mechanism")
@pytest.mark.servers("13-uring")
def test_works_by_a_ring(traced: Traced) -> None:
    """io_uring_enter() alone: no other call is made on a client, and none waits."""
    others = ACCEPTS | READS | WRITES | (WAITS - URING)
    server, trace = traced(",".join(sorted(URING | others | FORKS)))
    before = len(trace.calls())
    silent = server.crowd(SILENT, HALF)
    with server.connect() as c:
        for _ in range(ASKED):
            demand_page(c)
    demand(server.serves() and bool(silent), WRONG_PAGE)
    trace.has(lambda calls: len(calls) - before >= ASKED, SEEN_S)
    used = [name for _, name, _ in trace.calls()[before:]]
    demand(used.count("io_uring_enter") >= ASKED, "it does not call io_uring_enter()")
    demand(set(used) <= URING, f"it also calls {in_words(set(used) - URING)}")


@contract("mechanism")
@pytest.mark.servers("15-slashdot")
def test_workers_with_a_loop_each(traced: Traced) -> None:
    """With -w 1: the first process serves no client, the second all of them, by epoll."""
    names = sorted(WAITS | ACCEPTS | READS | {"epoll_ctl"})
    server, trace = traced(",".join(names))
    silent = server.crowd(SILENT)
    for c in silent:
        demand_page(c)

    def added(calls: Collection[Call]) -> int:
        return count(calls, ("epoll_ctl",), "EPOLL_CTL_ADD")

    trace.has(lambda _: added(since_the_first_client(trace)) >= SILENT, SEEN_S)
    calls = since_the_first_client(trace)
    serving = callers(calls, READS)
    demand(server.pid not in serving, "the first process serves clients itself")
    demand(serving <= set(server.children()) and bool(serving), "no worker serves the clients")
    served = [call for call in calls if call.pid in serving]
    demand(added(served) >= SILENT, "its worker does not wait for its clients by epoll")


@contract("mechanism")
@pytest.mark.servers("16-coroutines")
def test_a_stack_for_each_connection(traced: Traced) -> None:
    """One thread that waits with epoll, and a mapping for each silent client: by MAP_STACK, or with
    a guard page."""
    names = "epoll_ctl,mmap,mmap2,mprotect"
    calls, silent = loop_of(*looping(traced, EPOLL, names), EPOLL, "epoll_wait()")
    added = count(calls, ("epoll_ctl",), "EPOLL_CTL_ADD")
    demand(added > len(silent), "the clients are not put into the set")
    mapped = count(calls, ("mmap", "mmap2"), "MAP_STACK")
    guarded = count(calls, ("mprotect",), "PROT_NONE")
    demand(max(mapped, guarded) > len(silent), "the clients have no stacks")


# ---- a process or a thread for each client


def capacity_is(server: Server, number: int) -> None:
    """Demands that so many clients are served at once, and that one more waits until another
    ends."""
    served = []
    for _ in range(number - 1):  # each is served before the next one comes
        served.append(server.connect())
        demand_page(served[-1])
    silent = server.connect()
    time.sleep(server.patience.silence)
    with server.connect() as late:
        late.send(LAST)
        waits = late.hears_nothing(server.patience.silence)
        demand(waits, f"more than {number} are served at once")
        silent.send(LAST)
        demand(silent.read_reply().body == HELLO, WRONG_PAGE)
        for c in (silent, *served):
            c.close()
        demand(late.read_reply().body == HELLO, WRONG_PAGE)


@contract("mechanism")
@pytest.mark.servers("01-iterative")
def test_serves_one_after_the_other(traced: Traced) -> None:
    """One process and one thread, whose sockets block."""
    names = sorted(FORKS | ACCEPTS | READS | WAITS)
    server, trace = traced(",".join(names))
    capacity_is(server, 1)
    trace.has(lambda calls: sum(name in ACCEPTS for _, name, _ in calls) >= 2, 1.0)
    calls = since_the_first_client(trace)
    demand(not callers(calls, FORKS), "it starts a process or a thread for a client")
    demand(len(callers(calls, ACCEPTS | READS)) == 1, "more than one process or thread serves")
    ready = count(calls, ACCEPTS, "SOCK_NONBLOCK") or callers(calls, WAITS - POLL)
    demand(not ready, "its sockets do not block: this lab asks for sockets that block")


@contract("mechanism")
@pytest.mark.servers("02-fork")
def test_a_process_for_each_connection(traced: Traced) -> None:
    """None before a client has come; the parent accepts, and a child talks to the client."""
    server, trace = traced(",".join(sorted(FORKS | ACCEPTS | READS)))
    demand(not server.children(), "processes are there before any client has come")
    clients = server.crowd(ASKED)
    there = wait_until(lambda: len(server.children()) >= ASKED, SEEN_S)
    for c in clients:
        demand_page(c, LAST)
    served = wait_until(lambda: len(callers(since_the_first_client(trace), READS)) >= ASKED, SEEN_S)
    calls = since_the_first_client(trace)
    demand(bool(callers(calls, FORKS)), "no fork() follows accept()")
    demand(server.pid not in callers(calls, READS), "the parent talks to clients itself")
    demand(there, f"{ASKED} clients have come, and not as many children are there")
    demand(served, "the clients are not served by a process each")


@contract("mechanism")
@pytest.mark.servers("03-prefork")
def test_workers_are_there_before(traced: Traced) -> None:
    """So many as -w says, each for one client at a time; for clients none is started."""
    server, trace = traced(",".join(sorted(FORKS | ACCEPTS | READS)), "-w", str(ASKED))
    demand(
        wait_until(lambda: len(server.children()) == ASKED, SEEN_S),
        f"with -w {ASKED} there are {len(server.children())} workers before any client has come",
    )
    workers = set(server.children())
    capacity_is(server, ASKED)
    for _ in range(ASKED):
        demand(server.serves(), WRONG_PAGE)
    demand(set(server.children()) == workers, "its processes change with its clients")
    wait_until(lambda: bool(callers(since_the_first_client(trace), READS)), SEEN_S)
    calls = since_the_first_client(trace)
    demand(not callers(calls, FORKS), "it forks when clients come")
    demand(callers(calls, ACCEPTS) <= workers, "a worker does not accept its clients itself")
    demand(callers(calls, READS) <= workers, "its first process talks to clients itself")


def threads(server: Server) -> set[int]:
    """The numbers of its threads."""
    return {int(name.rpartition("/")[2]) for name in proc.tasks(server.pid)}


@contract("mechanism")
@pytest.mark.servers("04-threads")
def test_a_thread_for_each_connection(traced: Traced) -> None:
    """None before a client has come, and no process."""
    server, trace = traced(",".join(sorted(FORKS | ACCEPTS | READS)))
    before = threads(server)
    demand(len(before) == 1, f"{len(before)} threads are there before any client has come")
    clients = server.crowd(ASKED)
    wait_until(lambda: len(threads(server)) > ASKED, SEEN_S)
    demand(not server.children(), "it starts processes, not threads")
    new = len(threads(server) - before)
    demand(new == ASKED, f"{new} threads more for {ASKED} clients")
    for c in clients:  # what they get is not asked: a mistake of this lab closes others' files
        c.send(LAST)
    wait_until(lambda: len(callers(since_the_first_client(trace), READS)) >= ASKED, SEEN_S)
    readers = callers(since_the_first_client(trace), READS)
    demand(len(readers) >= ASKED, "the clients are not served by a thread each")


@contract("mechanism")
@pytest.mark.servers("05-pool")
def test_threads_are_there_before(traced: Traced) -> None:
    """So many as -w says, each for one client at a time, and one that accepts for all."""
    server, trace = traced(",".join(sorted(FORKS | ACCEPTS | READS)), "-w", str(ASKED))
    before = threads(server)
    there = len(before) - 1
    demand(there == ASKED, f"with -w {ASKED} there are {there} threads before any client has come")
    capacity_is(server, ASKED)
    demand(not server.children(), "it starts processes, not threads")
    demand(threads(server) == before, "its threads change with its clients")
    wait_until(lambda: bool(callers(since_the_first_client(trace), READS)), SEEN_S)
    calls = since_the_first_client(trace)
    demand(not callers(calls, FORKS), "it starts processes or threads when clients come")
    accepting, reading = callers(calls, ACCEPTS), callers(calls, READS)
    demand(len(accepting) == 1, f"{len(accepting)} threads accept, not one")
    demand(not accepting & reading, "the thread that accepts also serves: nothing goes through the queue")


@contract("mechanism")
@pytest.mark.servers("05b-nonblocking")
def test_never_waits_in_a_connection(traced: Traced) -> None:
    """One client at a time, on a socket that does not block; it waits by poll()."""
    server, trace = traced(",".join(sorted(FORKS | ACCEPTS | READS | WAITS)))
    listening = proc.sockets(server.pid)
    with server.connect() as c:
        demand_page(c)
        for number, what in proc.descriptors(server.pid).items():
            flags = re.search(r"^flags:\s*(\d+)$", proc.text(server.pid, f"fdinfo/{number}"), re.M)
            blocks = flags is not None and not int(flags[1], 8) & os.O_NONBLOCK
            is_client = what.startswith("socket:") and what not in listening
            demand(not (is_client and blocks), "the client's socket blocks")
    capacity_is(server, 1)
    trace.has(lambda calls: any(name in POLL for _, name, _ in calls), SEEN_S)
    calls = since_the_first_client(trace)
    used = {call.name for call in calls if may_sleep(call)}
    demand(bool(used) and used <= POLL, f"it waits by {in_words(used)}, not by poll() alone")
    demand(not callers(calls, FORKS), "it starts a process or a thread for a client")
