"""What the conformance tests leave open about 09-epoll: what only edges can lose, whose turn it is,
and the two programs beside the server.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from conformance import proc
from conformance.matrix import contract
from conformance.process import Server, Target, Unprivileged, limited, wait_until
from conformance.programs import Run, Start
from conformance.site import HELLO, Site
from conformance.test_faults import busy_share
from conformance.wire import ContractBroken, request

pytestmark = pytest.mark.servers("09-epoll")
ASK = request("/hello.txt")
LAST = request("/hello.txt", "Connection: close")
MANY = 300  #: requests: more than a turn answers, and more bytes than one read takes
TRIGGERED = pytest.mark.parametrize("options", [(), ("-e",)], ids=["level", "edge"])


@contextmanager
def held(server: Server) -> Iterator[None]:
    """While it is stopped, whatever happens becomes one event."""
    server.signal(signal.SIGSTOP)
    assert wait_until(lambda: proc.stopped(server.pid), server.patience.limit)
    try:
        yield
    finally:
        server.signal(signal.SIGCONT)


@contract("concurrency", "mechanism")
def test_clients_that_come_together(server: Server) -> None:
    """The kernel tells once of all of them, and nobody comes afterwards."""
    with held(server):
        clients = [server.connect() for _ in range(40)]
        for c in clients:
            c.send(LAST)
    for c in clients:
        assert c.read_reply().body == HELLO


@contract("emfile", "mechanism")
def test_a_client_for_whom_there_was_no_descriptor(
    start: Start, unprivileged: Unprivileged
) -> None:
    """Nobody comes after this one, so the kernel has nothing more to tell: the server itself has to
    remember, and to try again, but not all the time."""
    server = start(user=unprivileged)
    with limited(server, "nofile", max(proc.descriptors(server.pid)) + 1):
        client = server.connect()
        client.send(LAST)
        share = busy_share(server, 0.6)
        assert share < 0.3, f"takes {share:.0%} of a busy loop's time while it can do nothing"
    assert client.read_reply().body == HELLO


@contract("pipelining", "mechanism")
@TRIGGERED
def test_many_requests_in_one_write(start: Start, options: tuple[str, ...]) -> None:
    with start(*options).connect() as c:
        c.send(ASK * MANY)
        for _ in range(MANY):
            assert c.read_reply().body == HELLO


@contract("any-length", "mechanism")
@TRIGGERED
def test_a_file_longer_than_a_turn(start: Start, docroot: Site, options: tuple[str, ...]) -> None:
    assert start(*options).get("/medium.bin").body == (docroot.root / "medium.bin").read_bytes()


@contract("any-length", "mechanism")
@TRIGGERED
def test_a_reader_that_pauses(start: Start, docroot: Site, options: tuple[str, ...]) -> None:
    """Meanwhile the buffers fill, and send() gives EAGAIN."""
    server = start(*options)
    with server.connect(receive_buffer=65536) as c:
        c.send(request("/big.bin", "Connection: close"))
        c.read_head()
        time.sleep(server.patience.silence)
        assert c.read_all() == (docroot.root / "big.bin").read_bytes()


@contract("mechanism")
@TRIGGERED
def test_who_waits_costs_nothing(start: Start, options: tuple[str, ...]) -> None:
    """Nearly every socket can be written to, nearly always: who asks to be told never sleeps."""
    server = start(*options)
    idle = server.connect()
    idle.send(ASK)
    idle.read_reply()
    stuck = server.connect(receive_buffer=4096)
    stuck.send(request("/big.bin"))
    stuck.read_head()
    time.sleep(server.patience.silence)
    share = busy_share(server, 0.6)
    assert share < 0.3, f"takes {share:.0%} of a busy loop's time while all its clients are silent"


def succeeds(target: Target, run: Run, name: str, line: str) -> None:
    """The program has judged itself; its line shows that it has looked."""
    done = run(target.binary.with_name(name))
    if done.returncode != 0 or done.stdout != line:
        raise ContractBroken(f"{name}: " + (done.stdout + done.stderr).strip().replace("\n", "; "))


@contract("mechanism")
def test_closed(target: Target, run: Run) -> None:
    line = "looked 1000 times, was told 0 times of a client that it has forgotten\n"
    succeeds(target, run, "closed", line)


@contract("mechanism")
def test_shared(target: Target, run: Run) -> None:
    succeeds(target, run, "shared", "the second worker was told of its client\n")
