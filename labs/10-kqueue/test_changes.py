"""What the conformance tests leave open about 10-kqueue: when the kernel is told of a change."""

from __future__ import annotations

import itertools
import socket

import pytest

from conformance.matrix import contract
from conformance.process import Server
from conformance.programs import Traced
from conformance.site import HELLO, noise
from conformance.wire import ASK, request

pytestmark = pytest.mark.servers("10-kqueue")
CROWD = 280  #: more than one kevent() brings; each changes twice: more than the list takes
LONG = 300_007  #: bytes of medium.bin
#: On Linux kqueue is made of epoll: each change is one epoll_ctl(), each wait an epoll_wait().
CALLS = "accept4,recvfrom,sendto,epoll_ctl,epoll_wait"


def of_small_segments(server: Server) -> socket.socket:
    """A client for whom the server's buffers are small, so that its socket is full soon."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 500)
    s.settimeout(server.patience.limit)
    s.connect(server.address)
    return s


def all_from(s: socket.socket) -> bytes:
    return b"".join(iter(lambda: s.recv(LONG), b""))


@contract("mechanism")
def test_all_changes_of_a_turn_go_with_the_wait(traced: Traced) -> None:
    server, trace = traced(CALLS)
    with server.held():
        clients = [server.connect() for _ in range(10)]
        for c in clients:
            c.send(ASK)
    for c in clients:
        assert c.read_reply().body == HELLO
    assert server.rests()
    names = trace.names()
    names = names[names.index("accept4") :]
    assert names.count("epoll_ctl") >= len(clients)
    between = [after for name, after in itertools.pairwise(names) if name == "epoll_ctl"]
    others = sorted(set(between) - {"epoll_ctl", "epoll_wait"})
    assert not others, f"after a change of what is watched came {' and '.join(others)}, no wait"


@contract("mechanism", "concurrency")
def test_more_changes_than_room(server: Server) -> None:
    """All ask in one moment for more than their sockets hold. Somebody new comes last: the kernel
    tells of him once, and not within the first batch of events.
    """
    crowd = [of_small_segments(server) for _ in range(CROWD)]
    try:
        for s in crowd:
            s.sendall(ASK)
            assert s.recv(4096).endswith(HELLO)
        with server.held():
            for s in crowd:
                s.sendall(request("/medium.bin", "Connection: close"))
            guest = server.connect()
            guest.send(ASK)
        assert guest.read_reply().body == HELLO
        for s in crowd:
            reply = all_from(s)
            assert reply.endswith(noise(LONG)), f"{len(reply)} bytes of a reply came"
    finally:
        for s in crowd:
            s.close()


@contract("survives")
def test_who_cannot_be_watched(traced: Traced) -> None:
    """The fifth epoll_ctl() is that for the first client: two signals and the guests come before,
    and what the queue itself is made of.
    """
    server, trace = traced("epoll_ctl", inject="epoll_ctl:error=ENOSPC:when=5")
    with server.connect() as c:
        assert trace.saw("ENOSPC", server.patience.limit)
        c.expect_gone()
    assert server.serves()
