"""The servers that wait for all clients at once: by one kind of call, never for one of them alone,
and for nobody too long.
"""

from __future__ import annotations

import re
import resource
import signal
import time
from pathlib import Path

import pytest

from conformance import proc, tracing
from conformance.contract import contract
from conformance.process import Target, wait_until
from conformance.programs import Start
from conformance.servers import READY, WAITING
from conformance.site import HELLO
from conformance.wire import request

ALL_WAITS = (
    "select,pselect6,poll,ppoll,epoll_wait,epoll_pwait,epoll_pwait2,rt_sigtimedwait,rt_sigsuspend,"
    "pause,nanosleep,clock_nanosleep,futex,io_uring_enter"
)
TRANSFERS = (
    "recvfrom,recvmsg,recvmmsg,read,readv,sendto,sendmsg,sendmmsg,write,writev,sendfile,splice"
)
ASK = request("/hello.txt", "Connection: close")
PIECE = 64 * 1024  #: that was begun within a turn


def traced(tmp_path: Path, calls: str) -> tracing.Trace:
    return tracing.Trace(tmp_path / "trace", calls)


@contract("mechanism")
@pytest.mark.servers(*WAITING)
def test_one_kind_of_wait(start: Start, tmp_path: Path) -> None:
    """Whether clients are silent, crowd in, or take long to read."""
    trace = traced(tmp_path, ALL_WAITS)
    server = start(wrapper=trace.wrapper(), env=tracing.ENV)
    waits = server.target.model.waits
    clients = [server.connect() for _ in range(20)]
    for c in reversed(clients):
        c.send(ASK)
        assert c.read_reply().body == HELLO
    with server.connect(receive_buffer=4096) as slow:
        slow.send(request("/medium.bin", "Connection: close"))
        assert slow.read_head().status == 200
        assert len(slow.read_all()) == 300_007
    assert trace.has(lambda calls: len(calls) > 10, server.patience.limit)
    used = {name for pid, name, _ in trace.calls() if pid in server.serving()}
    if server.target.model.threaded or server.target.model.threads_of_worker:
        # and for moments for a lock that the others hold
        used.discard("futex")
    if server.target.variant == "asan":
        used.discard("futex")  # GCC 14's library wakes at its start whom nobody has put to sleep
    assert used, "it never waited"
    assert used <= waits


@contract("mechanism", "concurrency")
@pytest.mark.servers(*READY)
def test_no_call_on_a_client_can_block(start: Start, tmp_path: Path) -> None:
    """Every socket is non-blocking before the first byte goes over it: seen in the trace, and in
    the flags of those that are open.
    """
    trace = traced(tmp_path, f"accept,accept4,fcntl,{TRANSFERS}")
    server = start(wrapper=trace.wrapper(), env=tracing.ENV)
    kept = [server.connect() for _ in range(3)]
    for c in kept:
        c.send(request("/hello.txt"))
        assert c.read_reply().body == HELLO
    (pid,) = server.serving()
    held = proc.sockets(pid)
    assert len(held) == 4  # and the one that listens
    for number, what in proc.descriptors(pid).items():  # a file may be closed meanwhile
        if what in held:
            text = proc.text(pid, f"fdinfo/{number}")
            flags = re.search(r"^flags:\s*([0-7]+)$", text, re.MULTILINE)
            assert flags is not None and int(flags[1], 8) & 0o4000, f"descriptor {number} blocks"
    trips = ("recvfrom", "recvmsg", "sendto", "sendmsg", "writev")
    assert trace.has(  # strace writes a moment later than the server acts
        lambda calls: sum(1 for _, name, _ in calls if name in trips) >= 6, server.patience.limit
    )
    accepted: set[str] = set()
    quiet: set[str] = set()
    transfers = 0
    for line in trace.completed():
        if match := re.search(r"accept4?\(.*\) += (\d+)", line):
            accepted.add(match[1])
            quiet.discard(match[1])
            if "SOCK_NONBLOCK" in line:
                quiet.add(match[1])
        elif match := re.search(r"fcntl\((\d+), F_SETFL, .*O_NONBLOCK.*\) += 0", line):
            quiet.add(match[1])
        elif match := re.search(r"\d+ +(\w+)\((\d+),", line):
            if match[1] in TRANSFERS.split(",") and match[2] in accepted:
                transfers += 1
                assert match[2] in quiet, f"before it is non-blocking: {line}"
    assert transfers >= 6


@contract("mechanism", "concurrency")
@pytest.mark.servers(*WAITING)
def test_a_client_has_its_budget_and_no_more(target: Target, start: Start, tmp_path: Path) -> None:
    """Between two waits one client gets the bytes of a turn at most, and the piece that was begun
    within them, however much its socket takes.
    """
    calls = f"{ALL_WAITS},sendto,sendmsg,write,writev,sendfile"
    trace = tracing.watch(target, tmp_path / "trace", calls)
    server = start(wrapper=trace.wrapper(), env=trace.env)
    with server.connect(receive_buffer=4 << 20) as c:
        c.send(request("/big.bin", "Range: bytes=0-8388607", "Connection: close"))
        assert c.read_head().status == 206
        assert len(c.read_all()) == 8 << 20
    sent, most, total = 0, 0, 0
    assert trace.has(
        lambda calls: sum(int(r) for _, n, r in calls if n[:4] in ("send", "writ") and r.isdigit())
        >= 8 << 20,
        server.patience.limit,
    )
    for _, name, result in trace.calls():
        if name in ALL_WAITS.split(","):
            sent = 0
        elif name[:4] in ("send", "writ") and result.isdigit():
            sent += int(result)
            total += int(result)
            most = max(most, sent)
    assert total > 8 << 20
    assert most <= target.model.turn + PIECE, f"{most} bytes to one client in one turn"


@contract("mechanism", "pipelining")
@pytest.mark.servers(*WAITING)
def test_a_client_has_16_requests_in_a_turn(target: Target, start: Start, tmp_path: Path) -> None:
    trace = tracing.watch(target, tmp_path / "trace", f"{ALL_WAITS},sendto,sendmsg,writev")
    server = start(wrapper=trace.wrapper(), env=trace.env)
    with server.connect() as c:
        c.send(request("/hello.txt") * 39 + ASK)
        for _ in range(40):
            assert c.read_reply().body == HELLO
        c.expect_end()
    assert trace.has(
        lambda calls: sum(1 for _, name, _ in calls if name[:4] in ("send", "writ")) >= 40,
        server.patience.limit,
    )
    replies, most = 0, 0
    for _, name, _ in trace.calls():
        if name in ALL_WAITS.split(","):
            replies = 0
        replies += name[:4] in ("send", "writ")
        most = max(most, replies)
    assert (0 if target.model.ring else 1) < most <= 16


@contract("emfile", "concurrency")
@pytest.mark.servers(*READY)
def test_guests_without_room_do_not_hold_up_clients(
    target: Target, start: Start, tmp_path: Path
) -> None:
    """accept() fails for want of descriptors: the server must not rest, because others are being
    served; and must not try again at once.
    """
    if target.model.makes_room:
        pytest.skip("the client would have to go for the guest: test_slashdot.py")
    trace = traced(tmp_path, f"{ALL_WAITS},accept,accept4,recvfrom")
    server = start(wrapper=trace.wrapper(), env=tracing.ENV)
    with server.connect(receive_buffer=4096) as kept:
        kept.send(request("/big.bin"))
        assert kept.read_head().status == 200
        used = max(proc.descriptors(server.pid)) + 1
        old = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (used, old[1]))
        with server.connect() as guest:
            guest.send(ASK)
            for _ in range(20):  # he is being answered: nobody can be sent away for the other
                kept.read_exactly(65_536)
            time.sleep(server.patience.silence)
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, old)
            assert guest.read_reply().body == HELLO
    refused = [r for _, name, r in trace.calls() if name.startswith("accept") and r == "EMFILE"]
    assert refused, "the limit did not bite"
    assert len(refused) <= 10 + 10 * server.patience.limit
    # the sanitizer of threads has one of its own, which sleeps
    assert not any("sleep" in name for pid, name, _ in trace.calls() if pid == server.pid)


# ---- 06-select: FD_SETSIZE


@contract("survives", "leaks", "concurrency")
@pytest.mark.servers("06-select")
def test_more_clients_than_a_set_holds(start: Start) -> None:
    """Descriptors from FD_SETSIZE on are refused with 503; all others are served, in any order."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3000:
        pytest.skip(f"the limit of descriptors is {hard}, 3000 are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
    server = start(backlog=4096)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (3000, hard))
    clients = [server.connect() for _ in range(1200)]
    refused = served = 0
    for c in reversed(clients):
        if not c.try_send(ASK):
            refused += 1
            continue
        reply = c.read_reply()
        assert reply.status in (200, 503)
        served += reply.status == 200
        refused += reply.status == 503
        if reply.status == 200:
            assert reply.body == HELLO
    assert served + refused == 1200
    assert 900 <= served < 1024
    for c in clients:
        c.close()
    assert wait_until(server.serves, server.patience.limit)
    assert server.settles()


# ---- 08-sigio: the queue of signals


@contract("mechanism", "survives", "concurrency")
@pytest.mark.servers("08-sigio")
@pytest.mark.parametrize("queue", [0, 4])
def test_a_queue_of_signals_that_overflows(start: Start, tmp_path: Path, queue: int) -> None:
    """While it is stopped, more happens than the queue holds: guests knock, requests are completed,
    clients leave. Nobody is forgotten.
    """
    prlimit = ["/usr/bin/prlimit", f"--sigpending={queue}"]
    trace = traced(tmp_path, "poll,ppoll,rt_sigtimedwait")
    server = start(wrapper=[*prlimit, *trace.wrapper()], env=tracing.ENV)
    for _ in range(3):
        old = [server.connect() for _ in range(30)]
        for c in old:
            c.send(ASK[:20])
        assert wait_until(lambda: len(proc.sockets(server.pid)) == 31, server.patience.limit)
        server.signal(signal.SIGSTOP)
        new = [server.connect() for _ in range(10)]
        for c in old[10:]:
            c.send(ASK[20:])
        for c in old[:10]:
            c.close()
        for c in new:
            c.send(ASK)
        server.signal(signal.SIGCONT)
        for c in [*old[10:], *new]:
            assert c.read_reply().body == HELLO
            c.expect_end()
        assert server.settles()
    assert trace.has(
        lambda calls: any(name in ("poll", "ppoll") for _, name, _ in calls), server.patience.limit
    )
    with_si = [line for line in trace.lines() if "SIGIO" in line or "SIGPOLL" in line]
    assert with_si, "the queue never overflowed"


@contract("mechanism", "survives", "concurrency")
@pytest.mark.servers("08-sigio")
def test_an_overflow_near_the_limit_of_descriptors(start: Start) -> None:
    """poll() refuses more entries than there may be descriptors, and tables grow by doubling."""
    wrapper = ["/usr/bin/prlimit", "--sigpending=4", "--nofile=100"]
    server = start(wrapper=wrapper, backlog=128)
    clients = [server.connect() for _ in range(80)]
    for c in clients:
        c.send(ASK[:20])
    assert wait_until(lambda: len(proc.sockets(server.pid)) == 81, server.patience.limit)
    server.signal(signal.SIGSTOP)
    for c in clients:
        c.send(ASK[20:])
    server.signal(signal.SIGCONT)
    for c in clients:
        assert c.read_reply().body == HELLO


# ---- 14-owfat: what the library does below


@contract("mechanism")
@pytest.mark.servers("14-owfat")
def test_what_libowfat_does_for_a_request(start: Start, tmp_path: Path) -> None:
    """Told once, by level, with room for 100 answers; head and file are one packet; and nothing is
    asked that 09-epoll does not ask, but the flags of the file. It has sendfile() or not: Debian 13
    has built it without, and then it maps the file and writes.
    """
    trace = traced(tmp_path, "epoll_ctl,epoll_wait,fcntl,setsockopt,close,poll,ppoll," + TRANSFERS)
    server = start(wrapper=trace.wrapper(), env=tracing.ENV)
    with server.connect() as c:
        for method in ("GET", "GET", "GET", "HEAD"):
            c.send(request("/hello.txt", method=method))
            assert c.read_reply(method).status == 200
    assert server.settles()
    assert trace.has(
        lambda calls: [name for _, name, _ in calls[-2:]] == ["epoll_ctl", "close"],
        server.patience.limit,
    )
    lines = trace.lines()
    assert all(", 100, " in line for line in lines if re.search(r"epoll_wait\(.* = ", line))
    added = [line for line in lines if "EPOLL_CTL_ADD" in line]
    assert len(added) == 2  # the listening socket, and the connection
    assert all("{events=EPOLLIN, " in line for line in added)
    turns = " ".join(name for _, name, _ in trace.calls()).split("epoll_wait ")
    mapped = {line.split()[-1] for line in proc.text(server.pid, "maps").splitlines()}
    (library,) = (Path(name) for name in mapped if "/libowfat." in name)
    send = "sendfile" if b"sendfile64" in library.read_bytes() else "write"
    file, head = f"recvfrom fcntl sendto {send} close ", "recvfrom close sendto setsockopt "
    assert [turn for turn in turns if "sendto" in turn] == [file, file, file, head]
    assert all("MSG_MORE" in line for line in lines if "sendto(" in line)
    assert turns[-1] == "recvfrom epoll_ctl close"
    assert [line for line in lines if "epoll_ctl(" in line][-1].count("EPOLL_CTL_DEL") == 1


@contract("mechanism", "keep-alive")
@pytest.mark.servers("14-owfat")
def test_libowfat_changes_what_it_watches(start: Start, tmp_path: Path) -> None:
    """A reply that gets stuck adds the wish to write to the one to read, and takes it back."""
    trace = traced(tmp_path, "epoll_ctl")
    server = start(wrapper=trace.wrapper(), env=tracing.ENV)
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


@contract("survives")
@pytest.mark.servers("14-owfat")
def test_a_descriptor_that_is_a_multiple_of_16(start: Start) -> None:
    """Debian's libowfat 0.32 takes such a one for the head of its list of those to be closed."""
    take = 'for fd in 3 4 5 6 7 8 9 10 11 12 13 14 15; do eval "exec $fd</dev/null"; done'
    server = start(wrapper=["/bin/bash", "-c", f'{take}; exec "$@"', "bash"])
    assert Path(f"/proc/{server.pid}/fd/16").readlink().is_dir()
    assert server.serves()


@contract("survives", "idle-time-out")
@pytest.mark.servers("14-owfat")
def test_libowfat_does_not_say_that_it_could_not_watch(start: Start, tmp_path: Path) -> None:
    """io_wantread() has no answer. The client is not heard, and ended like one that is silent."""
    inject = "epoll_ctl:error=ENOSPC:when=2"
    trace = tracing.Trace(tmp_path / "trace", "epoll_ctl", inject=inject)
    server = start("-t", "1", wrapper=trace.wrapper(), env=tracing.ENV)
    with server.connect() as c:
        c.send(ASK)
        assert c.hears_nothing(0.5)
        c.expect_gone()
    assert server.serves()
