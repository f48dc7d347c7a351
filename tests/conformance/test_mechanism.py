"""Each server works by the mechanism its chapter is about: seen in /proc, and in a system-call
trace. Those that wait for all clients at once do it by one kind of call, never for one of them
alone, and for nobody too long.
"""

import contextlib
import os
import re
import resource
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conformance import proc, tracing
from tests.conformance.matrix import READY, WAITING, contract, kind
from tests.conformance.process import Patience, Server, Target, limited, wait_until
from tests.conformance.programs import Start, Traced
from tests.conformance.site import HELLO
from tests.conformance.wire import ASK, LAST, Connection, ContractBroken, request

pytestmark = kind("model")
ALL_WAITS = (
    "select,pselect6,poll,ppoll,epoll_wait,epoll_pwait,epoll_pwait2,rt_sigtimedwait,rt_sigsuspend,"
    "pause,nanosleep,clock_nanosleep,futex,io_uring_enter"
)
TRANSFERS = "recvfrom,recvmsg,recvmmsg,read,readv,sendto,sendmsg,sendmmsg,write,writev,sendfile,splice"
PIECE = 64 * 1024  #: that was begun within a turn


@contract("mechanism", of="serving")
def test_processes_and_threads_per_connection(server: Server) -> None:
    """Workers are there from the start, and do not become more."""
    model, base = server.target.model, server.base
    clients = server.crowd(3 if model.capacity > 1 else 1, b"GET / HTTP/1.1\r\n")
    children = base.children + len(clients) * model.processes_per_connection
    threads = base.threads + len(clients) * model.threads_per_connection

    most = 0  # one too many may live for a second only

    def enough() -> bool:
        nonlocal most
        found = server.holdings()
        most = max(most, found.children)
        return found.children >= children and found.threads >= threads

    assert wait_until(enough, server.patience.limit)
    end = time.monotonic() + server.patience.silence  # for those that would be too many
    while time.monotonic() < end:
        enough()
        time.sleep(0.01)
    found = server.holdings()
    assert found.children == children and most <= children
    assert 0 <= found.threads - threads <= server.target.spare_threads
    if model.workers:
        workers = found.threads - 1 if model.threaded else found.children
        assert 0 <= workers - model.workers <= server.target.spare_threads


@contract("mechanism", "leaks", servers=("02-fork",))
def test_descriptors_of_parent_and_child(server: Server) -> None:
    """The child's listening socket would keep the port; the parent's client is a leak."""
    listening = proc.sockets(server.pid)
    assert len(listening) == 1
    with server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\n")
        assert wait_until(
            lambda: len(server.children()) == 1 and len(proc.sockets(server.pid)) == 1,
            server.patience.limit,
        ), f"sockets of the parent: {proc.sockets(server.pid)}, children: {server.children()}"
        (child,) = server.children()
        assert wait_until(
            lambda: not proc.sockets(child) & listening and len(proc.sockets(child)) == 1,
            server.patience.limit,
        ), f"sockets of the child: {proc.descriptors(child)}"
        assert proc.sockets(server.pid) == listening


@contract("mechanism", servers=WAITING)
def test_one_kind_of_wait(traced: Traced) -> None:
    """Whether clients are silent, crowd in, or take long to read. To wait costs nothing."""
    server, trace = traced(ALL_WAITS)
    at_start = len(trace.calls())  # poll() before a line of stderr, which does not wait

    def waits_at_rest() -> int:
        time.sleep(server.patience.silence)
        before = len(trace.calls())
        time.sleep(server.patience.silence)
        return len(trace.calls()) - before

    at_most = 2 + 10 * server.patience.silence  # looks whether somebody has left
    if server.target.variant == "tsan":  # its own thread wakes ten times a second, in each process
        at_most *= 1 + len(server.children())
    assert waits_at_rest() <= at_most
    clients = server.crowd(20)
    for c in reversed(clients):
        assert c.ask(LAST).body == HELLO
    with server.connect(receive_buffer=4096) as slow:
        assert len(slow.ask(request("/medium.bin", "Connection: close")).body) == 300_007
    with server.connect() as kept:
        for _ in range(12):  # of the many above one wait may tell
            assert kept.ask().body == HELLO
            time.sleep(0.02)
        assert waits_at_rest() <= at_most
    assert trace.has(lambda calls: len(calls) > 10, server.patience.limit)
    used = {name for pid, name, _ in trace.calls()[at_start:] if pid in server.serving()}
    model = server.target.model
    if model.threaded or model.threads_of_worker or server.target.variant == "asan":
        # for moments, for a lock that the others hold; GCC 14's library wakes at its start whom
        # nobody has put to sleep
        used.discard("futex")
    assert used, "it never waited"
    assert used <= model.waits


@contract(
    "mechanism",
    servers=("06-select", "07-poll", "09-epoll", "09-epoll-edge", "10-kqueue", "16-coroutines"),
)
def test_the_calls_of_a_request(traced: Traced) -> None:
    """No more than these, and nothing but the wait is the server's own."""
    server, trace = traced("network,desc")
    wait = f"(?:{'|'.join(server.target.model.waits)})(?: ioctl)?"  # asked by kqueue's EVFILT_READ
    one = rf"{wait} recvfrom openat2 \w*stat\w* pread64 sendto close recvfrom "
    three = re.compile(f"(?:{one}){{3}}")

    def three_in_a_row() -> bool:
        """Each of a server that sleeps: beside others a request may be there before it looks again, and it need not
        wait. (One that its tracer has stopped does not count as asleep.)
        """
        for _ in range(5):
            assert wait_until(lambda: proc.asleep(server.pid), server.patience.limit)
            assert c.ask().body == HELLO
        return trace.has(lambda _: bool(three.search(" ".join(trace.names()))), 1)

    with server.connect() as c:
        assert wait_until(three_in_a_row, server.patience.limit), trace.names()


@contract("mechanism", "concurrency", servers=READY)
def test_no_call_on_a_client_can_block(target: Target, start: Start) -> None:
    """Nor on the socket that listens. And no descriptor but that outlives execve()."""
    server = start(*(("-s", "more+splice") if target.name == "11-sendfile" else ()))
    (pid,) = server.serving()
    listening = proc.sockets(pid)
    for _ in range(3):
        assert server.connect().ask().body == HELLO
    clients = proc.sockets(pid)
    assert (len(listening), len(clients)) == (1, 4)
    for number, what in proc.descriptors(pid).items():  # a file may be closed meanwhile
        text = proc.text(pid, f"fdinfo/{number}")
        match = re.search(r"^flags:\s*([0-7]+)$", text, re.MULTILINE)
        flags = int(match[1], 8) if match else os.O_CLOEXEC | os.O_NONBLOCK
        assert what not in clients or flags & os.O_NONBLOCK, f"{number} blocks"
        ours = number > 2 and what not in listening and target.name != "14-owfat"
        assert not ours or flags & os.O_CLOEXEC, f"{number}, {what}, outlives execve()"


def is_send(name: str) -> bool:
    return name.startswith(("send", "writ"))


def turns(trace: tracing.Trace, amount: Callable[[str, str], int]) -> list[int]:
    """What comes of the calls between two waits, summed up; a call may count for nothing."""
    sums = [0]
    for _, name, result in trace.calls():
        if name in ALL_WAITS.split(","):
            sums.append(0)
        else:
            sums[-1] += amount(name, result)
    return sums


@contract("mechanism", "concurrency", "pipelining", servers=WAITING)
def test_the_turn_of_a_client(target: Target, traced: Traced) -> None:
    """Between two waits: 16 requests; the bytes of a turn, and the piece that was begun in it."""
    calls = f"{ALL_WAITS},sendto,sendmsg,write,writev,sendfile"
    server, trace = traced(calls, operations=True)
    limit = server.patience.limit
    with server.connect() as c:
        c.send(ASK * 39 + LAST)
        for _ in range(40):
            assert c.read_reply().body == HELLO
        c.expect_end()

    def replies() -> list[int]:  # 12-aio sends head and body by a call each
        sends = ("sendto", "sendmsg", "writev")
        return turns(trace, lambda name, n: name in sends and n != str(len(HELLO)))

    def sent() -> list[int]:
        return turns(trace, lambda name, n: int(n) if is_send(name) and n.isdigit() else 0)

    assert trace.has(lambda _: sum(replies()) >= 40, limit)
    assert (0 if target.model.ring else 1) < max(replies()) <= 16
    if target.variant == "tsan":
        return  # a reader that is faster than the loop brings it a second piece in a turn
    with server.connect(receive_buffer=4 << 20) as c:
        ask = request("/big.bin", "Range: bytes=0-8388607", "Connection: close")
        assert len(c.ask(ask).body) == 8 << 20
    assert trace.has(lambda _: sum(sent()) > 8 << 20, limit)
    assert max(sent()) <= target.model.turn + PIECE


@contract("mechanism", "concurrency", servers=READY)
def test_a_crowd_does_not_keep_the_others_waiting(traced: Traced) -> None:
    """So many are accepted in a turn, however many knock."""
    server, trace = traced(f"{ALL_WAITS},accept,accept4")
    with server.held():
        clients = server.crowd(60, ASK)
    for c in clients:
        assert c.read_reply().body == HELLO

    def accepted() -> list[int]:
        return turns(trace, lambda name, n: name.startswith("accept") and n.isdigit())

    assert trace.has(lambda _: sum(accepted()) == 60, server.patience.limit)
    assert max(accepted()) <= 16


@contract("emfile", "concurrency", servers=READY)
def test_guests_without_room_do_not_hold_up_clients(target: Target, traced: Traced) -> None:
    """Without descriptors the server must neither rest nor try again at once: others are served."""
    if target.model.makes_room:
        pytest.skip("the client would have to go for the guest: test_slashdot.py")
    server, trace = traced(f"{ALL_WAITS},accept,accept4,recvfrom")
    with server.download() as kept:
        with limited(server, "nofile", max(proc.descriptors(server.pid)) + 1):
            guest = server.connect()
            guest.send(LAST)
            for _ in range(20):  # he is being answered: nobody can be sent away for the other
                kept.read_exactly(65_536)
            time.sleep(server.patience.silence)
            before = len(trace.calls())
            time.sleep(server.patience.silence)
            assert len(trace.calls()) - before <= 10 + 40 * server.patience.silence
        assert guest.read_reply().body == HELLO
    refused = [r for _, name, r in trace.calls() if name.startswith("accept") and r == "EMFILE"]
    assert refused, "the limit did not bite"
    assert len(refused) <= 10 + 10 * server.patience.limit
    # the sanitizer of threads has one of its own, which sleeps
    assert not any("sleep" in name for pid, name, _ in trace.calls() if pid == server.pid)


@pytest.fixture
def descriptors() -> Iterator[int]:
    """So many for this process. They are taken back when `start`, which comes later, has ended server and clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3000:
        pytest.skip(f"the limit of descriptors is {hard}, 3000 are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
    yield 3000
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contract("survives", "leaks", "concurrency", servers=("06-select",))
def test_more_clients_than_a_set_holds(descriptors: int, start: Start) -> None:
    """Descriptors from FD_SETSIZE on are refused with 503; all others are served, in any order."""
    server = start(backlog=4096)
    _, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (descriptors, hard))
    clients = server.crowd(1200)
    served = 0
    for c in reversed(clients):
        if not c.try_send(LAST):
            continue
        reply = c.read_reply()
        assert reply.status == 503 or (reply.status, reply.body) == (200, HELLO)
        served += reply.status == 200
    assert 900 <= served < 1024
    for c in clients:
        c.close()
    assert wait_until(server.serves, server.patience.limit)
    assert server.settles()


@contract("mechanism", "survives", "concurrency", servers=("08-sigio",))
@pytest.mark.parametrize("queue", [0, 4])
def test_a_queue_of_signals_that_overflows(traced: Traced, queue: int) -> None:
    """While it is stopped, more happens than the queue holds: guests knock, requests are completed,
    clients leave. Nobody is forgotten, near the limit of descriptors too: poll() refuses more
    entries than there may be, and tables grow by doubling.
    """
    prlimit = ["/usr/bin/prlimit", f"--sigpending={queue}", "--nofile=100"]
    server, trace = traced("poll,ppoll,rt_sigtimedwait", wrapper=prlimit, backlog=128)
    for _ in range(3):
        old = server.crowd(70, LAST[:20])
        assert wait_until(lambda: len(proc.sockets(server.pid)) == 71, server.patience.limit)
        with server.held():
            new = server.crowd(10)
            for c in old[10:]:
                c.send(LAST[20:])
            for c in old[:10]:
                c.close()
            for c in new:
                c.send(LAST)
        for c in [*old[10:], *new]:
            assert c.read_reply().body == HELLO
            c.expect_end()
        assert server.settles()
    assert trace.has(lambda _: trace.count("poll", "ppoll") > 0, server.patience.limit)
    with_si = [line for line in trace.lines() if "SIGIO" in line or "SIGPOLL" in line]
    assert with_si, "the queue never overflowed"


@contract("mechanism", "survives", servers=("08-sigio", "09-epoll", "10-kqueue"))
def test_who_knocks_before_the_kernel_is_to_tell_of_it(traced: Traced, patience: Patience) -> None:
    """From listen() on the system connects clients. No event tells of those who are there by then (here: for 0.3 s)."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = int(other.getsockname()[1])
    early: list[Connection] = []

    def connects() -> bool:
        with contextlib.suppress(ConnectionRefusedError):
            early.append(Connection(("127.0.0.1", port), patience.limit))
        return early != []

    with ThreadPoolExecutor(1) as pool:
        knocking = pool.submit(wait_until, connects, patience.limit)
        traced("listen", inject="listen:delay_exit=300000", port=port)
        assert knocking.result()
    with early[0] as c:
        assert c.ask(LAST).body == HELLO


@contract("survives", servers=("08-sigio",))
def test_a_first_client_with_a_high_descriptor(start: Start) -> None:
    """The table grows until it has a place: to double it once, or to begin with 64, is not enough."""
    take = 'for fd in $(seq 3 200); do eval "exec $fd</dev/null"; done'
    server = start(wrapper=["/bin/bash", "-c", f'{take}; exec "$@"', "bash"])
    with server.connect() as c:
        c.send(LAST[:20])
        assert c.hears_nothing(0.05)  # it is accepted, and the rest comes by an event
        assert c.ask(LAST[20:]).body == HELLO


@contract("mechanism", servers=("14-owfat",))
def test_what_libowfat_does_for_a_request(traced: Traced) -> None:
    """Told once, by level, with room for 100 answers; head and file are one packet; and nothing is
    asked that 09-epoll does not ask, but the flags of the file. It has sendfile() or not: Debian 13
    has built it without, and then it maps the file and writes.
    """
    server, trace = traced("epoll_ctl,epoll_wait,fcntl,setsockopt,close,poll,ppoll," + TRANSFERS)
    with server.connect() as c:
        for method in ("GET", "GET", "GET", "HEAD"):
            assert c.ask(request("/hello.txt", method=method), method).status == 200
    assert server.settles()
    assert trace.has(lambda _: trace.names()[-2:] == ["epoll_ctl", "close"], server.patience.limit)
    lines = trace.lines()
    assert all(", 100, " in line for line in lines if re.search(r"epoll_wait\(.* = ", line))
    added = [line for line in lines if "EPOLL_CTL_ADD" in line]
    assert len(added) == 2  # the listening socket, and the connection
    assert all("{events=EPOLLIN, " in line for line in added)
    turns = " ".join(trace.names()).split("epoll_wait ")
    mapped = {line.split()[-1] for line in proc.text(server.pid, "maps").splitlines()}
    (library,) = (Path(name) for name in mapped if "/libowfat." in name)
    send = "sendfile" if b"sendfile64" in library.read_bytes() else "write"
    file, head = f"recvfrom fcntl sendto {send} close ", "recvfrom close sendto setsockopt "
    assert [turn for turn in turns if "sendto" in turn] == [file, file, file, head]
    assert all("MSG_MORE" in line for line in lines if "sendto(" in line)
    assert turns[-1] == "recvfrom epoll_ctl close"
    assert [line for line in lines if "epoll_ctl(" in line][-1].count("EPOLL_CTL_DEL") == 1


@contract("survives", "concurrency", servers=("14-owfat",))
def test_a_socket_that_would_block(traced: Traced) -> None:
    """The third fcntl() for the first client fails, if it needs as many: the others do not wait for it even so."""
    server, trace = traced("fcntl")
    time.sleep(server.patience.silence)  # strace writes a moment later
    at_start = trace.count("fcntl")
    server, _ = traced("fcntl", inject=f"fcntl:error=EPERM:when={at_start + 3}")
    server.connect(receive_buffer=4096).send(request("/big.bin"))
    time.sleep(server.patience.silence)
    with contextlib.suppress(ContractBroken):  # the fault may come to this one
        server.get("/hello.txt")
    assert server.serves()


@contract("mechanism", "keep-alive", servers=("14-owfat",))
def test_libowfat_changes_what_it_watches(traced: Traced) -> None:
    """A reply that gets stuck adds the wish to write to the one to read, and takes it back."""
    server, trace = traced("epoll_ctl")
    with server.connect(receive_buffer=4096) as c:
        for _ in range(2):
            c.send(request("/big.bin", "Range: bytes=0-8388607"))
            assert c.read_head().status == 206
            time.sleep(server.patience.silence)
            c.read_exactly(8 << 20)
    assert server.settles()
    operations = [re.findall(r"EPOLL_CTL_\w+|events=[A-Z|]+", line) for line in trace.lines()]
    both, one = ["EPOLL_CTL_MOD", "events=EPOLLIN|EPOLLOUT"], ["EPOLL_CTL_MOD", "events=EPOLLIN"]
    assert operations[2:6] == [both, one] * 2
    assert operations[6:] == [["EPOLL_CTL_DEL"]]


@contract("survives", servers=("14-owfat",))
def test_a_descriptor_that_is_a_multiple_of_16(start: Start) -> None:
    """Debian's libowfat 0.32 takes such a one for the head of its list of those to be closed."""
    take = 'for fd in 3 4 5 6 7 8 9 10 11 12 13 14 15; do eval "exec $fd</dev/null"; done'
    server = start(wrapper=["/bin/bash", "-c", f'{take}; exec "$@"', "bash"])
    assert Path(f"/proc/{server.pid}/fd/16").readlink().is_dir()
    assert server.serves()


@contract("survives", servers=("14-owfat",))
def test_libowfat_does_not_say_that_it_could_not_watch(traced: Traced) -> None:
    """io_wantread() has no answer, but errno has: the client is told."""
    server, _ = traced("epoll_ctl", inject="epoll_ctl:error=ENOSPC:when=2")
    assert server.get("/hello.txt").status == 503
    assert server.serves()


@contract("leaks", "memory", servers=("16-coroutines",))
def test_who_is_refused_leaves_no_stack(traced: Traced) -> None:
    """A client has a stack before epoll is told of him. Where that fails, the stack is kept for the next one."""
    server, _ = traced("epoll_ctl", inject="epoll_ctl:error=ENOSPC:when=2+")

    def stacks() -> int:
        assert server.get("/hello.txt").status == 503
        ranges = [line.split()[0].split("-") for line in proc.text(server.pid, "maps").splitlines()]
        return sum(int(end, 16) - int(begin, 16) == 64 << 10 for begin, end in ranges)

    before = stacks()
    assert [stacks() for _ in range(5)] == [before] * 5
