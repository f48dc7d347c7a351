"""SIGTERM and SIGINT: stop accepting, finish the replies in flight, leave no child, exit 0."""

import contextlib
import itertools
import re
import signal
import time

import pytest

from tests.conformance import proc, tracing
from tests.conformance.matrix import EVERY, contract, kind
from tests.conformance.process import STOP_GRACE, Server, Target, wait_until
from tests.conformance.programs import Start, Traced
from tests.conformance.site import HELLO, Site
from tests.conformance.wire import ASK, ContractBroken, request

pytestmark = kind("model")
BOTH = [signal.SIGTERM, signal.SIGINT]


def stops_well_before_the_grace_is_over(server: Server) -> None:
    """It has nothing to wait for: half of the grace is wide enough to say so."""
    assert server.wait(STOP_GRACE / 2 * server.patience.factor) == 0
    assert server.session() == []


def refuses(server: Server) -> bool:
    try:
        server.connect().close()
    except (ConnectionRefusedError, ConnectionResetError):  # reset: the listener closed meanwhile
        return True
    return False


def answers(server: Server) -> bool:
    """Somebody new."""
    with contextlib.suppress(OSError, ContractBroken), server.connect(limit=0.2) as late:
        return late.ask().status > 0
    return False


@contract("stop", of="serving")
def test_idle(start: Start) -> None:
    """As soon as its line is there, and after requests."""
    for requests, signum in itertools.product((0, 0, 5), BOTH):
        server = start()
        for _ in range(requests):
            assert server.serves()
        server.signal(signum)
        stops_well_before_the_grace_is_over(server)
    assert refuses(server)


@contract("stop", "stop-idle", of="serving")
@pytest.mark.parametrize("signum", BOTH, ids=["SIGTERM", "SIGINT"])
def test_with_idle_connections(server: Server, signum: int) -> None:
    """Silent from the beginning, silent after a reply, in the middle of a request."""
    clients = server.crowd(3)
    assert clients[0].ask().body == HELLO
    clients[1].send(ASK[:20])
    time.sleep(0.05)
    server.signal(signum)
    stops_well_before_the_grace_is_over(server)
    for c in clients:
        if server.target.model.defers:  # the silent were never accepted: they hear when they speak
            c.try_send(ASK)
        c.expect_gone()


@contract("stop", "stop-idle")
def test_with_a_request_that_drips(server: Server) -> None:
    """It is never complete, and must not hold the server up for longer than the grace."""
    with server.connect() as c:
        c.send(ASK[:20])
        server.signal(signal.SIGTERM)
        deadline = time.monotonic() + server.patience.limit + STOP_GRACE
        while server.alive() and time.monotonic() < deadline:
            c.try_send(b"x")
            time.sleep(0.02)
        assert server.wait() == 0


@contract("stop", "stop-idle")
def test_signals_at_every_point_of_an_exchange(start: Start) -> None:
    """Also between a look at a flag and going to sleep: nobody would wake the server then."""
    for delay in range(25):
        server, signum = start(), BOTH[delay % 2]
        with server.connect() as c:
            c.send(ASK)
            time.sleep(delay * 0.00012)
            server.signal(signum)
            c.expect_gone()
        stops_well_before_the_grace_is_over(server)


@contract("stop-in-flight", "stop", of="serving")
@pytest.mark.parametrize("group", [False, True], ids=["the process", "its group, by Ctrl-C"])
def test_a_reply_in_flight_is_finished(server: Server, docroot: Site, group: bool) -> None:
    """And a second signal, or a third, changes nothing."""
    if server.target.model.under_inetd and group:
        pytest.skip("inetd and what it starts are in one group, but their terminal is not this one")
    content = (docroot.root / "big.bin").read_bytes()
    with server.download(window=65536) as c:
        start = c.read_exactly(100_000)
        signalled = time.monotonic()
        for signum in reversed(BOTH * 2) if group else BOTH * 2:
            (server.signal_group if group else server.signal)(signum)
            time.sleep(0.03)
        assert start + server.finishes(c, len(content) - len(start), signalled) == content
        c.expect_gone()
    assert server.wait() == 0


@contract("stop", "mechanism")
@pytest.mark.servers("01-iterative", "09-epoll")
def test_the_grace_begins_once(traced: Traced) -> None:
    """Else whoever presses Ctrl-C again and again keeps the server there."""
    server, trace = traced("?alarm,setitimer")
    with server.download():
        for _ in range(3):
            server.signal(signal.SIGINT)
            time.sleep(0.2)
    assert server.wait() == 0
    grace = re.compile(rf"alarm\({STOP_GRACE:g}\)|it_value=\{{tv_sec={STOP_GRACE:g},")
    assert len([line for line in trace.completed() if grace.search(line)]) == 1


@contract("stop-in-flight", "mechanism")
def test_it_sleeps_until_a_slow_reader_reads(server: Server) -> None:
    """After the signal, too: then the listening socket is shut down, and always ready. New clients are refused."""
    with server.download():
        server.signal(signal.SIGTERM)
        assert server.rests()
        if not server.target.model.master:  # which has the sockets, too, and keeps them to its end
            assert wait_until(lambda: refuses(server), server.patience.limit) and server.alive()
    assert server.wait() == 0


@contract("drain", "stop-in-flight", "stop")
def test_bytes_that_come_while_the_server_stops(start: Start, docroot: Site) -> None:
    """While a reply is sent, and when all is in the socket. Whether a reset overtakes is luck.
    Meanwhile nobody new is accepted.
    """
    for fields in ((), ("Range: bytes=0-99999",)) * 3:
        server = start()
        content = (docroot.root / "big.bin").read_bytes()[: 100_000 if fields else None]
        with server.download("/big.bin", *fields, window=4096 if fields else 65536) as c:
            begin = c.read_exactly(1000)
            assert server.rests()
            signalled = time.monotonic()
            server.signal(signal.SIGTERM)
            assert wait_until(lambda s=server: not answers(s), server.patience.limit)  # type: ignore[misc]
            assert begin + server.finishes(c, len(content) - len(begin), signalled, drips=True) == content
        assert server.wait() == 0


@contract("stop-in-flight", "keep-alive", "pipelining", "drain")
def test_a_client_that_pipelines_behind_the_signal(server: Server, docroot: Site) -> None:
    """On a kept connection: the reply in flight is whole, and what is answered after it is, too."""
    content = (docroot.root / "big.bin").read_bytes()
    with server.connect(receive_buffer=65536) as c:
        c.ask().demand_keep_alive()
        c.send(request("/big.bin"))
        assert c.read_head().status == 200
        signalled = time.monotonic()
        server.signal(signal.SIGTERM)
        c.send(ASK * 20)
        assert server.finishes(c, len(content), signalled) == content
        replies = c.read_all()
        assert c.ended == "closed", c.transcript()
        assert replies == b"" or replies.endswith(HELLO), c.transcript()
    assert server.wait() == 0


@contract("stop-in-flight", "close", "keep-alive", "pipelining", servers=[s for s in EVERY if s != "01-iterative"])
def test_the_reply_after_the_signal_is_the_last(server: Server) -> None:
    """It has "Connection: close": a client that has sent more requests knows that they are not answered. (01 keeps no
    client.)
    """
    with server.connect(receive_buffer=65536) as c:
        c.send(request("/big.bin") + ASK * 2)
        length = int(c.read_head().need("Content-Length"))
        signalled = time.monotonic()
        server.signal(signal.SIGTERM)
        assert server.rests()
        server.finishes(c, length, signalled)
        reply = c.read_reply()
        assert (reply.body, reply.keeps_alive) == (HELLO, False)
        c.expect_end()
    assert server.wait() == 0


@contract("stop", "stop-in-flight")
def test_requests_that_had_come_are_answered(server: Server) -> None:
    """The signal finds the server busy with others, and their requests in its sockets."""
    if server.target.model.capacity < 16:
        pytest.skip("serves one client after the other: what the others sent is not its affair")
    clients = server.crowd(12)
    for c in clients:
        assert c.ask().body == HELLO
    with server.held():
        for c in clients:
            c.send(ASK)
        server.signal(signal.SIGTERM)
    for c in clients:
        assert c.read_reply().body == HELLO
    assert server.wait() == 0


@contract("stop-grace", "stop")
@pytest.mark.long
def test_replies_that_take_too_long_are_given_up(server: Server) -> None:
    """Of one who does not read, and one who reads a little: 5 s, then the server ends."""
    slow = server.download("/sparse.bin")
    if server.target.model.capacity > 1:
        server.download("/sparse.bin")
    server.signal(signal.SIGTERM)
    begin = time.monotonic()
    limit = STOP_GRACE + server.patience.limit
    while server.alive() and time.monotonic() < begin + limit:
        if slow.ended is None and not slow.hears_nothing(0):
            slow.socket.settimeout(1)
            slow.ended = None if slow.socket.recv(65536) else "closed"
        time.sleep(0.002)
    assert server.wait(0.1) == 0
    assert time.monotonic() - begin > 1, "the replies in flight were given no time"
    assert server.session() == []


@contract("stop", servers=("04-threads", "05-pool"))
def test_a_full_server_whose_clock_is_set_back(target: Target, start: Start) -> None:
    """It wakes once a second to look whether it shall stop, whatever time it is said to be."""
    server = start("-w", "1", env=tracing.preload(target, CLOCK_AHEAD="3600"))
    kept = server.crowd(2 if target.name == "05-pool" else 1)
    with server.connect():
        time.sleep(server.patience.silence)
        server.signal(signal.SIGTERM)
        stops_well_before_the_grace_is_over(server)
    for c in kept:
        c.expect_gone()


@contract("stop", "stop-in-flight", servers=("06-select", "07-poll", "09-epoll", "10-kqueue"))
def test_nobody_connects_to_one_that_stops(traced: Traced, docroot: Site) -> None:
    """FreeBSD goes on connecting to a socket that is shut: here shutdown() does nothing."""
    server, _ = traced("shutdown", inject="shutdown:retval=0")
    content = (docroot.root / "big.bin").read_bytes()[:3_000_000]  # strace makes each call a slow one
    with server.download("/big.bin", f"Range: bytes=0-{len(content) - 1}", window=65536) as c:
        signalled = time.monotonic()
        server.signal(signal.SIGTERM)
        assert wait_until(lambda: refuses(server), server.patience.limit)
        assert server.alive()  # it was no end that closed it
        assert server.finishes(c, len(content), signalled) == content
    assert server.wait() == 0


@contract("stop", "stop-idle", servers=("10-kqueue",))
@pytest.mark.parametrize("signum", BOTH, ids=["SIGTERM", "SIGINT"])
def test_a_signal_right_before_the_wait(traced: Traced, signum: int) -> None:
    """NetBSD makes no event of it. What kevent() is told beneath it takes 0.3 s each: the signal
    comes when the flag has been looked at, and before the sleep.
    """
    server, trace = traced(
        "recvfrom,epoll_ctl,shutdown",
        inject=("shutdown:retval=0", "epoll_ctl:delay_exit=300000"),
    )
    with server.connect():
        limit = server.patience.limit
        assert trace.has(lambda calls: any(name == "recvfrom" for _, name, _ in calls), limit)
        server.signal(signum)
        stops_well_before_the_grace_is_over(server)


@contract("stop", "mechanism", servers=("03-prefork", "15-slashdot"))
@pytest.mark.parametrize("late", [False, True])
def test_workers_end_with_a_parent_that_was_killed(start: Start, traced: Traced, late: bool) -> None:
    """Else the port stays taken. Also where it ends before prctl() has asked to be told."""
    if late:
        server, _ = traced("prctl", "-w", "2", inject="prctl:delay_enter=500000")
    else:
        server = start("-w", "2")
    assert wait_until(lambda: len(server.children()) == 2, server.patience.limit)
    workers = server.children()
    server.ends_with = -signal.SIGKILL
    server.signal(signal.SIGKILL)
    assert server.wait() == server.ends_with
    assert wait_until(lambda: not any(map(proc.alive, workers)), server.patience.limit)
    assert wait_until(lambda: refuses(server), server.patience.limit)
