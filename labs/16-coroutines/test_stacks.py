"""What the conformance tests leave open about 16-coroutines, because only a broken one shows it."""

import pytest

from tests.conformance.matrix import contract
from tests.conformance.process import Server
from tests.conformance.programs import Start
from tests.conformance.site import HELLO, Site
from tests.conformance.wire import ASK, request

pytestmark = pytest.mark.servers("16-coroutines")
#: Less than the server's socket takes at once, and more than a client's with a small window.
LAST_REPLY = 60_000
#: Of each download: more than both sockets hold.
LONG = 3 << 20
PIECE = 1 << 18


@contract("log", "survives")
def test_a_page_that_is_logged(start: Start) -> None:
    """The line of the log is made on the stack of the connection."""
    server = start("-v")
    with server.connect() as c:
        assert c.ask(ASK).body == HELLO
    assert server.serves()


@contract("concurrency", "mechanism")
def test_another_client_beside_a_slow_end(server: Server) -> None:
    """The server has sent its last reply, and waits until the client has received it."""
    slow = server.connect(receive_buffer=4096)
    slow.send(request("/medium.bin", f"Range: bytes=0-{LAST_REPLY - 1}", "Connection: close"))
    assert slow.read_head().status == 206
    with server.connect() as other:
        for _ in range(3):
            assert other.ask(ASK).body == HELLO


@contract("concurrency", "any-length")
def test_two_downloads_in_turn(server: Server, docroot: Site) -> None:
    """Two parts of a file, of which each client reads a piece when the other has read one."""
    content = (docroot.root / "big.bin").read_bytes()[: 2 * LONG]
    firsts = (0, LONG)
    clients = [server.connect(receive_buffer=65536) for _ in firsts]
    for client, first in zip(clients, firsts, strict=True):
        client.send(request("/big.bin", f"Range: bytes={first}-{first + LONG - 1}"))
    for client in clients:
        assert client.read_head().status == 206
    for at in range(0, LONG, PIECE):
        for client, first in zip(clients, firsts, strict=True):
            piece = client.read_exactly(PIECE)
            assert piece == content[first + at : first + at + PIECE], f"from byte {first + at} on"
