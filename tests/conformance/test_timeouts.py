"""-t: clients that keep the server waiting are ended. Only that it happens, and not at once, is
asserted.
"""

from __future__ import annotations

import time

import pytest

from conformance.contract import contract
from conformance.process import Server
from conformance.programs import Start
from conformance.site import HELLO
from conformance.wire import Connection, ConnectionLost, request

pytestmark = pytest.mark.long
ASK = request("/hello.txt")


@pytest.fixture
def impatient(start: Start) -> Server:
    """A server that waits one second. What must happen then has the wide bound patience.limit."""
    return start("-t", "1")


def wait_for_the_end(c: Connection) -> None:
    """The server ends it, but not before its time: half of it passes, if we are in time."""
    begin = time.monotonic()
    heard_nothing = c.hears_nothing(0.5)
    assert heard_nothing or time.monotonic() - begin > 0.9
    c.expect_gone()


@contract("idle-time-out")
@pytest.mark.parametrize(
    "sent", [b"", b"G", ASK[:20], ASK[:-1]], ids=["silent", "1", "20", "all but 1"]
)
def test_a_client_that_falls_silent(impatient: Server, sent: bytes) -> None:
    with impatient.connect() as c:
        c.send(sent)
        wait_for_the_end(c)
    assert impatient.serves()
    assert impatient.settles()


@contract("idle-time-out", "keep-alive")
def test_a_client_that_falls_silent_between_requests(impatient: Server) -> None:
    with impatient.connect() as c:
        for _ in range(2):
            c.send(ASK)
            assert c.read_reply().body == HELLO
        wait_for_the_end(c)
    assert impatient.settles()


@contract("idle-time-out")
def test_a_client_that_drips(impatient: Server) -> None:
    """A byte now and then is no request. At this rate the longest head would take minutes."""
    deadline = time.monotonic() + impatient.patience.limit
    dripping = request("/hello.txt", f"X: {'v' * 7000}")
    with impatient.connect() as c:
        for byte in dripping:
            if not c.try_send(bytes([byte])):
                break
            assert time.monotonic() < deadline, "still listening to a byte at a time"
            if not c.hears_nothing(0.05):
                break
        else:
            pytest.fail("listened to the end")
        c.expect_gone()
    assert impatient.settles()


@contract("idle-time-out", "keep-alive")
def test_a_client_that_asks_now_and_then(start: Start) -> None:
    """Every request starts the time anew: this connection lasts longer than -t in all."""
    with start("-t", "2").connect() as c:
        for _ in range(6):
            c.send(ASK)
            assert c.read_reply().body == HELLO
            time.sleep(0.4)


@contract("idle-time-out")
@pytest.mark.parametrize("read_first", [0, 100_000])
def test_a_client_that_stops_reading(impatient: Server, read_first: int) -> None:
    """The process, thread or memory of the reply is freed although the client stays."""
    with impatient.connect(receive_buffer=4096) as c:
        c.send(request("/big.bin"))
        reply = c.read_head()
        length = int(reply.need("Content-Length"))
        if read_first:
            c.read_exactly(read_first)
        assert impatient.settles()  # what the connection held is given back
        assert impatient.serves()
        with pytest.raises(ConnectionLost):
            c.read_exactly(length - read_first)


@contract("idle-time-out", "concurrency")
def test_others_are_served_while_some_are_waited_for(impatient: Server) -> None:
    """No harm from silent clients as long as they last; afterwards nothing of them is left."""
    silent = [impatient.connect() for _ in range(5)]
    asking = impatient.connect(limit=0.8 if impatient.target.model.capacity == 1 else 0)
    asking.send(request("/hello.txt", "Connection: close"))
    assert asking.read_reply().body == HELLO
    for c in silent:
        c.expect_gone()
    assert impatient.settles()


@contract("idle-time-out")
def test_silent_clients_above_a_busy_one(impatient: Server) -> None:
    """Those with the higher descriptors are not forgotten over what goes on at the lower ones."""
    if impatient.target.model.capacity == 1:
        pytest.skip("serves one after the other")
    leaving = [impatient.connect() for _ in range(3)]
    silent = [impatient.connect() for _ in range(3)]
    assert all(c.hears_nothing(0.02) for c in silent)  # until they have been accepted
    for c in leaving:
        c.close()
    time.sleep(0.1)
    assert impatient.serves()
    for c in silent:
        c.expect_gone()


@contract("idle-time-out", "survives")
def test_in_the_end_all_are_served(impatient: Server) -> None:
    """Silent clients cost the others their time-outs, at the worst: for 01-iterative one after the
    other.
    """
    silent = [impatient.connect() for _ in range(3)]
    assert impatient.serves()
    for c in silent:
        c.expect_gone()
