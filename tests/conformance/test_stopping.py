"""SIGTERM and SIGINT: stop accepting, finish the replies in flight, leave no child, exit 0."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from pathlib import Path

import pytest

from conformance import proc, tracing
from conformance.contract import contract
from conformance.process import STOP_GRACE, Server, wait_until
from conformance.programs import Start
from conformance.site import HELLO, Site
from conformance.wire import ContractBroken, request

ASK = request("/hello.txt")
SIGNALS = pytest.mark.parametrize(
    "signum", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"]
)


def stops_well_before_the_grace_is_over(server: Server) -> None:
    """It has nothing to wait for. Half of the grace is wide enough to say that it did not wait for
    it.
    """
    assert server.wait(STOP_GRACE / 2 * server.patience.factor) == 0
    assert proc.session(server.pid) == []


@contract("stop")
@SIGNALS
def test_idle(server: Server, signum: int) -> None:
    server.signal(signum)
    stops_well_before_the_grace_is_over(server)
    with pytest.raises(ConnectionRefusedError):
        server.connect()


@contract("stop")
@SIGNALS
def test_after_requests(server: Server, signum: int) -> None:
    for _ in range(5):
        assert server.serves()
    server.signal(signum)
    stops_well_before_the_grace_is_over(server)


@contract("stop", "listening-line")
@SIGNALS
def test_as_soon_as_it_listens(start: Start, signum: int) -> None:
    """Whoever starts a server may end it once its line is there."""
    for _ in range(10):
        server = start()
        server.signal(signum)
        stops_well_before_the_grace_is_over(server)


@contract("stop", "stop-idle")
@SIGNALS
def test_with_idle_connections(server: Server, signum: int) -> None:
    clients = [server.connect() for _ in range(3)]
    clients[0].send(ASK)
    assert clients[0].read_reply().body == HELLO
    time.sleep(0.05)
    server.signal(signum)
    stops_well_before_the_grace_is_over(server)
    for c in clients:
        if server.target.model.defers:  # the silent were never accepted: they hear when they speak
            c.try_send(ASK)
        c.expect_gone()


@contract("stop", "stop-idle")
def test_with_a_request_half_sent(server: Server) -> None:
    with server.connect() as c:
        c.send(ASK[:20])
        time.sleep(0.05)
        server.signal(signal.SIGTERM)
        stops_well_before_the_grace_is_over(server)


@contract("stop", "stop-idle")
def test_with_a_client_that_drips(server: Server) -> None:
    """A request that is never complete must not hold it up longer than the grace."""
    with server.connect() as c:
        c.send(ASK[:20])
        server.signal(signal.SIGTERM)
        deadline = time.monotonic() + server.patience.limit + STOP_GRACE
        while server.alive() and time.monotonic() < deadline:
            c.try_send(b"x")
            time.sleep(0.02)
        assert server.wait() == 0


@contract("stop-in-flight", "stop")
@SIGNALS
@pytest.mark.parametrize("whom", ["the process", "its group, as Ctrl-C does"])
def test_a_reply_in_flight_is_finished(
    server: Server, docroot: Site, signum: int, whom: str
) -> None:
    if server.target.model.under_inetd and whom != "the process":
        pytest.skip("inetd and what it starts are in one group, but their terminal is not this one")
    content = (docroot.root / "big.bin").read_bytes()
    with server.connect(receive_buffer=65536) as c:
        c.send(request("/big.bin"))
        assert c.read_head().status == 200
        start = c.read_exactly(100_000)
        if whom == "the process":
            server.signal(signum)
        else:
            os.killpg(server.pid, signum)
        time.sleep(0.1)
        body = start + c.read_exactly(len(content) - len(start))
        assert hashlib.sha256(body).digest() == hashlib.sha256(content).digest()
        c.expect_gone()
    assert server.wait() == 0


@contract("stop-in-flight", "stop")
def test_a_second_signal_changes_nothing(server: Server, docroot: Site) -> None:
    size = (docroot.root / "big.bin").stat().st_size
    with server.connect(receive_buffer=65536) as c:
        c.send(request("/big.bin"))
        assert c.read_head().status == 200
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            server.signal(signum)
            time.sleep(0.02)
        c.read_exactly(size)
    assert server.wait() == 0


@contract("stop")
def test_nobody_new_is_accepted(server: Server) -> None:
    with server.connect(receive_buffer=4096) as c:
        c.send(request("/big.bin"))
        c.read_head()
        server.signal(signal.SIGTERM)

        def is_served() -> bool:
            try:
                with server.connect(limit=0.2) as late:
                    late.send(ASK)
                    late.read_reply()
                return True
            except (OSError, ContractBroken):
                return False

        assert wait_until(lambda: not is_served(), server.patience.limit)
        assert not is_served()
    assert server.wait() == 0


@contract("stop-in-flight", "keep-alive")
def test_the_connection_ends_after_the_reply_in_flight(server: Server, docroot: Site) -> None:
    """A keep-alive client could ask for ever."""
    size = (docroot.root / "big.bin").stat().st_size
    with server.connect(receive_buffer=65536) as c:
        c.send(ASK)
        assert c.read_reply().body == HELLO
        c.send(request("/big.bin"))
        assert c.read_head().status == 200
        server.signal(signal.SIGTERM)
        c.read_exactly(size)
        c.try_send(ASK)
        c.expect_gone()
    assert server.wait() == 0


@contract("stop-grace", "stop")
@pytest.mark.long
@pytest.mark.parametrize("kind", ["stuck", "slow"])
def test_a_reply_that_takes_too_long_is_given_up(server: Server, kind: str) -> None:
    """A client that does not read, and one that reads a little all the time: 5 s, then the server
    ends.
    """
    with server.connect(receive_buffer=4096) as c:
        c.send(request("/sparse.bin"))
        c.read_head()
        server.signal(signal.SIGTERM)
        begin = time.monotonic()
        limit = STOP_GRACE + server.patience.limit
        while server.alive() and time.monotonic() < begin + limit:
            if kind == "slow" and c.ended is None and not c.hears_nothing(0):
                c.socket.settimeout(1)
                c.ended = None if c.socket.recv(65536) else "closed"
            time.sleep(0.002)
        assert server.wait(0.1) == 0
        assert time.monotonic() - begin > 1, "the reply in flight was given no time"
    assert proc.session(server.pid) == []


@contract("stop", "stop-idle")
@SIGNALS
def test_signals_at_every_point_of_an_exchange(start: Start, signum: int) -> None:
    """The signal may fall between looking at a flag and going to sleep; then nobody would wake the
    server.
    """
    for delay in range(30):
        server = start()
        with server.connect() as c:
            c.send(ASK)
            time.sleep(delay * 0.0001)
            server.signal(signum)
            c.expect_gone()
        stops_well_before_the_grace_is_over(server)


# The BSDs do not do with a listening socket that is shut what Linux does. Here shutdown() is made
# to do nothing at all.


@contract("stop", "stop-in-flight")
@pytest.mark.servers("06-select", "07-poll", "10-kqueue")
def test_nobody_connects_to_one_that_stops(start: Start, docroot: Site, tmp_path: Path) -> None:
    """FreeBSD goes on completing connections."""
    trace = tracing.Trace(tmp_path / "trace", "shutdown", inject="shutdown:retval=0")
    server = start(wrapper=trace.wrapper(), env=trace.env)
    size = (docroot.root / "big.bin").stat().st_size

    def refused() -> bool:
        try:
            server.connect().close()
        except ConnectionRefusedError:
            return True
        return False

    with server.connect(receive_buffer=65536) as c:
        c.send(request("/big.bin"))
        assert c.read_head().status == 200
        server.signal(signal.SIGTERM)
        assert wait_until(refused, server.patience.limit)
        c.read_exactly(size)  # it was no end that closed the socket
    assert server.wait() == 0


@contract("stop", "stop-idle")
@pytest.mark.servers("10-kqueue")
def test_a_signal_right_before_the_wait(start: Start, tmp_path: Path) -> None:
    """NetBSD makes no event of it. What kevent() is told beneath it takes 0.3 s each: the signal
    comes when the flag has been looked at, and before the sleep.
    """
    trace = tracing.Trace(
        tmp_path / "trace", "recvfrom,epoll_ctl,shutdown", inject="shutdown:retval=0"
    )
    slow = ["-e", "inject=epoll_ctl:delay_exit=300000"]
    server = start(wrapper=[*trace.wrapper(), *slow], env=trace.env)
    with server.connect():
        limit = server.patience.limit
        assert trace.has(lambda calls: any(name == "recvfrom" for _, name, _ in calls), limit)
        server.signal(signal.SIGTERM)
        stops_well_before_the_grace_is_over(server)


@contract("stop")
@pytest.mark.servers("03-prefork")
def test_workers_end_with_a_parent_that_was_killed(server: Server) -> None:
    """Else they would serve on, and nobody could start the server on this port again."""
    workers = server.children()
    assert workers
    server.ends_with = -signal.SIGKILL
    server.signal(signal.SIGKILL)
    assert server.wait() == server.ends_with
    assert wait_until(lambda: not any(map(proc.alive, workers)), server.patience.limit)
    with pytest.raises(ConnectionRefusedError):
        server.connect()
