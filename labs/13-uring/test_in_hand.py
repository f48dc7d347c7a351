"""What the conformance tests leave open about 13-uring: what happens when much is in the kernel's
hands in the same moment. The server is stopped meanwhile, so that it finds all of it at once.
"""

import contextlib
import socket

import pytest

from tests.conformance.matrix import contract
from tests.conformance.process import Server
from tests.conformance.programs import Start
from tests.conformance.site import HELLO, noise
from tests.conformance.wire import ASK, Connection, request

pytestmark = pytest.mark.servers("13-uring")
CROWD = 100  # of requests: the kernel has 64 buffers to put them into
STUCK = 300  # clients who do not read: there are 256 pieces


def connected(server: Server, count: int) -> list[Connection]:
    """Each has been served once: its connection is accepted, and waits for the next request."""
    clients = [server.connect() for _ in range(count)]
    for c in clients:
        assert c.ask(ASK).body == HELLO
    return clients


@contract("concurrency", "survives")
def test_many_who_ask_at_once(server: Server) -> None:
    """Every other one for something else, so that whoever gets another's file sees it. All of it is
    fewer requests than there are buffers.
    """
    for _ in range(3):
        clients = connected(server, 8)
        with server.held():
            for c, path in zip(clients, ["/hello.txt", "/medium.bin"] * 4, strict=True):
                c.send(request(path))
        for c, body in zip(clients, [HELLO, noise(300_007)] * 4, strict=True):
            assert c.read_reply().body == body


@contract("survives")
def test_more_requests_than_buffers(server: Server) -> None:
    with server.connect() as c:
        for _ in range(CROWD):
            assert c.ask(ASK).body == HELLO


@contract("concurrency", "memory")
def test_those_who_do_not_read(start: Start) -> None:
    """Small segments make the server's buffers small: of the usual size those of 300 were more than
    a kernel has for all of TCP, and its other users noticed.
    """
    server = start("-t", "60")
    with contextlib.ExitStack() as clients:
        for _ in range(STUCK):
            s = clients.enter_context(socket.socket())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 500)
            s.settimeout(server.patience.limit)
            s.connect(server.address)
            s.sendall(request("/big.bin"))
            assert s.recv(1000)
        assert server.serves()
