"""What the conformance tests leave open about 13-uring: what happens when much is in the kernel's
hands in the same moment. The server is stopped meanwhile, so that it finds all of it at once.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from conformance.matrix import contract
from conformance.process import Server
from conformance.programs import Start
from conformance.site import HELLO, noise
from conformance.wire import Connection, request

pytestmark = pytest.mark.servers("13-uring")
ASK = request("/hello.txt")
CROWD = 100  # of requests: the kernel has 64 buffers to put them into
STUCK = 300  # clients who do not read: there are 256 pieces


@contextmanager
def stopped(server: Server) -> Iterator[None]:
    server.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.signal(signal.SIGCONT)


def connected(server: Server, count: int) -> list[Connection]:
    """Each has been served once: its connection is accepted, and waits for the next request."""
    clients = [server.connect() for _ in range(count)]
    for c in clients:
        assert c.ask(ASK).body == HELLO
    return clients


@contract("concurrency", "survives")
def test_two_who_ask_at_once(server: Server) -> None:
    for _ in range(5):
        first, second = connected(server, 2)
        with stopped(server):
            first.send(ASK)
            second.send(request("/medium.bin"))
        assert first.read_reply().body == HELLO
        assert second.read_reply().body == noise(300_007)


@contract("survives")
def test_more_requests_than_buffers(server: Server) -> None:
    with server.connect() as c:
        for _ in range(CROWD):
            assert c.ask(ASK).body == HELLO


@contract("concurrency", "memory")
def test_those_who_do_not_read(start: Start) -> None:
    server = start("-t", "60")
    stuck = [server.connect(receive_buffer=4096) for _ in range(STUCK)]
    for c in stuck:
        c.send(request("/big.bin"))
        c.read_head()
    assert server.serves()
