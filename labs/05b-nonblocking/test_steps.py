"""What the conformance tests leave open about 05b-nonblocking: how long a client may take."""

import socket
import time

import pytest

from tests.conformance.matrix import contract
from tests.conformance.process import Patience
from tests.conformance.programs import Start
from tests.conformance.site import HELLO, noise
from tests.conformance.wire import ASK, request

pytestmark = pytest.mark.servers("05b-nonblocking")
PIECE = 8192
#: Less than a step, and more than the socket of a client with small segments takes at once.
LONG = 65_000


@pytest.fixture
def slow(start: Start, patience: Patience) -> tuple[socket.socket, int]:
    """A client for whom the server's buffers are small, and the time-out in seconds."""
    seconds = max(2, round(2 * patience.factor))
    server = start("-t", str(seconds))
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 500)
    s.settimeout(patience.limit)
    s.connect(server.address)
    return s, seconds


def exactly(s: socket.socket, n: int) -> bytes:
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        assert more, f"the server ended it after {len(data)} of {n} bytes"
        data += more
    return data


@contract("keep-alive")
def test_who_reads_slowly_is_not_ended(slow: tuple[socket.socket, int]) -> None:
    """In one and a half times the time-out nine steps of a reply: each has its own time."""
    s, seconds = slow
    with s:
        s.sendall(request("/big.bin"))
        for _ in range(72):
            exactly(s, PIECE)
            time.sleep(1.5 * seconds / 72)


@contract("keep-alive")
def test_who_stays_has_the_time_of_a_new_step(slow: tuple[socket.socket, int]) -> None:
    """He takes his time for the end of a reply, and then for the next request."""
    s, seconds = slow
    with s:
        s.sendall(request("/medium.bin", f"Range: bytes=0-{LONG - 1}"))
        time.sleep(0.6 * seconds)
        body = noise(300_007)[:LONG]
        data = exactly(s, LONG)
        while not data.endswith(body):
            data += exactly(s, 1)
        time.sleep(0.6 * seconds)
        s.sendall(ASK)
        assert s.recv(PIECE).endswith(HELLO), "the server ended it before the next request"
