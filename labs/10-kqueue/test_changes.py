"""What the conformance tests leave open about 10-kqueue: when the kernel is told of a change."""

import contextlib
import itertools
import socket
from collections.abc import Iterator

import pytest

from tests.conformance.matrix import contract
from tests.conformance.process import Server
from tests.conformance.programs import Traced
from tests.conformance.site import HELLO, noise
from tests.conformance.wire import ASK, request

pytestmark = pytest.mark.servers("10-kqueue")
CROWD = 280  #: more than one kevent() brings; each changes twice: more than the list takes
#: The first epoll_ctl() for a client: two signals and the guests come before, and what the queue
#: itself is made of.
FIRST = 5
LONG = 300_007  #: bytes of medium.bin
#: On Linux kqueue is made of epoll: each change is one epoll_ctl(), each wait an epoll_wait().
CALLS = "accept4,recvfrom,sendto,epoll_ctl,epoll_wait"


@contextlib.contextmanager
def crowd_of(server: Server) -> Iterator[list[socket.socket]]:
    """Each has been answered once. To them the server's buffers are small, so that sockets are full
    soon.
    """
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(socket.socket()) for _ in range(CROWD)]
        for s in crowd:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 500)
            s.settimeout(server.patience.limit)
            s.connect(server.address)
            s.sendall(ASK)
            assert s.recv(4096).endswith(HELLO)
        yield crowd


def all_from(s: socket.socket) -> bytes:
    return b"".join(iter(lambda: s.recv(LONG), b""))


@contract("index")
def test_it_serves(server: Server) -> None:
    """Each client is watched before it asks: who comes and goes within a turn is another test's."""
    index = b"<!doctype html><title>index</title>\n"
    for path, content, body in (("/hello.txt", "text/plain", HELLO), ("/", "text/html", index)):
        with server.connect() as c:
            assert server.rests()
            reply = c.ask(request(path))
            assert (reply.status, reply.body) == (200, body), path
            assert reply.need("Content-Type").startswith(content), path


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
    with crowd_of(server) as crowd:
        with server.held():
            for s in crowd:
                s.sendall(request("/medium.bin", "Connection: close"))
            guest = server.connect()
            guest.send(ASK)
        assert guest.read_reply().body == HELLO
        for s in crowd:
            reply = all_from(s)
            assert reply.endswith(noise(LONG)), f"{len(reply)} bytes of a reply came"


@contract("survives")
def test_who_cannot_be_watched(traced: Traced) -> None:
    server, trace = traced("epoll_ctl", inject=f"epoll_ctl:error=ENOSPC:when={FIRST}")
    with server.connect() as c:
        assert trace.saw("ENOSPC", server.patience.limit)
        c.expect_gone()
    assert server.serves()


@contract("survives")
def test_who_has_gone_within_the_turn(server: Server) -> None:
    """All of it has happened before the server's turn begins, so that in its course they are
    accepted, answered and closed: what it then says of them is of closed descriptors.
    """
    with server.held():
        for _ in range(10):
            with server.connect() as c:
                c.send(ASK)
    assert server.rests()
    assert server.serves()


@contract("survives")
def test_a_refusal_while_the_list_is_full(traced: Traced) -> None:
    """Everybody changes twice in the turn, more than the list takes, and of what is told first the
    kernel refuses some. Whom it concerns is ended, and all others are served.
    """
    first = FIRST + 2 * CROWD
    server, trace = traced(
        "epoll_ctl", inject=f"epoll_ctl:error=ENOSPC:when={first + 20}..{first + 39}"
    )
    with crowd_of(server) as crowd:
        with server.held():
            for s in crowd:
                s.sendall(request("/medium.bin", "Connection: close"))
        whole = 0
        for s in crowd:
            with contextlib.suppress(ConnectionResetError):
                whole += all_from(s).endswith(noise(LONG))
        assert trace.saw("ENOSPC", 0)
        assert CROWD - 20 <= whole < CROWD, f"{whole} of {CROWD} were served"
    assert server.serves()
