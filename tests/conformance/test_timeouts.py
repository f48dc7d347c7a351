"""-t: clients that keep the server waiting are ended. Only that it happens, and not at once, is
asserted.
"""

import contextlib
import time

import pytest

from tests.conformance.matrix import EVERY, WAITING, contract, kind
from tests.conformance.process import Server
from tests.conformance.programs import Start, Traced
from tests.conformance.site import HELLO, bigger_than_socket_buffers, noise
from tests.conformance.wire import ASK, LAST, Connection, ConnectionLost, request

pytestmark = [kind("model"), pytest.mark.long]
READERS = 300


@pytest.fixture
def impatient(start: Start) -> Server:
    """A server that waits one second. What must happen then has the wide bound patience.limit."""
    return start("-t", "1")


def wait_for_the_end(began: float, *clients: Connection) -> None:
    """The server ends them, but not before their time: half of it passes, if we are in time. They came after began."""
    heard_nothing = all(c.hears_nothing(0.5 / len(clients)) for c in clients)
    assert heard_nothing or time.monotonic() - began > 0.9
    for c in clients:
        c.expect_gone()


@contract("idle-time-out", of="serving")
def test_a_client_that_falls_silent(impatient: Server) -> None:
    """At once, in the middle of a request, and between two."""
    model = impatient.target.model
    clients, began = list[Connection](), 0.0
    for sent in (b"", b"G", ASK[:20], ASK[:-1], ASK * 2):
        if sent == ASK * 2 and model.slug == "01-iterative":
            continue  # keeps nobody
        if model.capacity == 1 or not clients:
            began = time.monotonic()
        c = impatient.connect()
        c.send(sent)
        for _ in range(sent.count(ASK)):
            assert c.read_reply().body == HELLO
        if model.capacity == 1:
            wait_for_the_end(began, c)
        clients.append(c)
    if model.capacity > 1:
        wait_for_the_end(began, *clients)
    assert impatient.settles()
    assert impatient.serves()


@contract("idle-time-out")
def test_a_client_that_drips(impatient: Server) -> None:
    """A byte now and then is no request. At this rate the longest head would take minutes."""
    deadline = time.monotonic() + impatient.patience.limit
    with impatient.connect() as c:
        for byte in request("/hello.txt", f"X: {'v' * 7000}"):
            if not c.try_send(bytes([byte])):
                break
            assert time.monotonic() < deadline, "still listening to a byte at a time"
            if not c.hears_nothing(0.05):
                break
        else:
            pytest.fail("listened to the end")
        c.expect_gone()
    assert impatient.settles()


@contract("idle-time-out")
def test_a_client_that_stops_reading(impatient: Server) -> None:
    """The process, thread or memory of the reply is freed although the client stays."""
    stuck = []
    for read_first in (0, 100_000)[: impatient.target.model.capacity]:
        c = impatient.connect(receive_buffer=4096)
        c.send(request("/big.bin"))
        length = int(c.read_head().need("Content-Length"))
        c.read_exactly(read_first)
        stuck.append((c, length - read_first))
    assert impatient.settles()  # what the connections held is given back
    assert impatient.serves()
    for c, rest in stuck:
        with pytest.raises(ConnectionLost):
            c.read_exactly(rest)


@contract("idle-time-out", "keep-alive")
def test_a_client_that_asks_now_and_then(start: Start) -> None:
    """Every request starts the time anew: this connection lasts longer than -t in all."""
    with start("-t", "2").connect() as c:
        for _ in range(6):
            assert c.ask().body == HELLO
            time.sleep(0.4)


EVENT_LOOPS = (
    "06-select",
    "07-poll",
    "08-sigio",
    "09-epoll",
    "10-kqueue",
    "11-sendfile",
    "12-aio",
    "13-uring",
    "16-coroutines",
)


@contract("idle-time-out", servers=(*EVENT_LOOPS, "14-owfat"))
def test_who_asked_in_time_is_answered(start: Start) -> None:
    """More of them than one wait can tell of, and it was the server that did not look."""
    for limit in (2, 8, 32):  # on a busy machine the first of them may have waited that long before the last has come
        began, server = time.monotonic(), start("-t", str(limit))
        clients = server.crowd(300)
        if time.monotonic() - began < limit / 2:
            break
    with server.held():
        for c in clients:
            c.send(ASK)
        time.sleep(limit + 0.2)
    for c in clients:
        assert c.read_reply().body == HELLO


@contract("idle-time-out", "any-length")
def test_who_reads_slowly_is_sent_all(start: Start) -> None:
    """Each 64 KiB start the time anew: this reply takes longer than -t in all."""
    with start("-t", "2").download(window=65536) as c:
        body = b""
        for _ in range(6):
            time.sleep(0.4)
            body += c.read_exactly(100_000)
        whole = noise(bigger_than_socket_buffers())
        assert body + c.read_exactly(len(whole) - len(body)) == whole


@contract("idle-time-out", "signals", servers=WAITING)
def test_a_silent_client_of_a_server_that_was_stopped(impatient: Server) -> None:
    """One wait ends with EINTR, which stays in errno. The next one just times out, and the client has to be ended."""
    with impatient.connect() as c:
        assert c.ask().body == HELLO
        assert impatient.rests()
        with impatient.held():
            pass
        c.expect_gone()


@contract("idle-time-out", servers=WAITING)
def test_who_has_read_in_time_is_sent_the_rest(start: Start) -> None:
    """The server was stopped meanwhile. To go on ends some waits with EINTR, and the server has heard of no client."""
    server, length = start("-t", "2"), 3_000_000
    with server.download("/big.bin", f"Range: bytes=0-{length - 1}", window=65536) as c:
        time.sleep(0.3)  # all buffers are full, and the server waits
        with server.held():
            body = c.read_until_silence(0.2)
            time.sleep(2.0)
        assert body + c.read_exactly(length - len(body)) == noise(length)


@contract("idle-time-out", servers=WAITING)
def test_more_readers_than_one_wait_reports_are_sent_the_rest(start: Start) -> None:
    """As above. epoll_wait() is asked for 256 events (EVENTS), libowfat for 100, a ring completes 20 to 40 polls."""
    length = 300_000
    with contextlib.ExitStack() as stack:
        for limit in (4, 16, 64):  # as above
            began, server = time.monotonic(), start("-t", str(limit))
            readers = [
                stack.enter_context(server.download("/big.bin", f"Range: bytes=0-{length - 1}", window=16384))
                for _ in range(READERS)
            ]
            if time.monotonic() - began < limit / 2 or limit == 64:
                break
            stack.close()
        time.sleep(0.3)  # all buffers are full, and the server waits
        got = [bytearray() for _ in readers]
        with server.held():
            until = time.monotonic() + limit + 0.5
            while time.monotonic() < until:
                for body, c in zip(got, readers, strict=True):
                    body += c.read_until_silence(0)
                time.sleep(0.1)
        until = time.monotonic() + server.patience.limit
        while any(len(body) < length for body in got) and time.monotonic() < until:  # all at once
            for body, c in zip(got, readers, strict=True):
                body += c.read_until_silence(0) if c.ended is None else b""
        assert [len(body) for body in got] == [length] * READERS
        assert bytes(got[0]) == noise(length)


@contract("idle-time-out", servers=[s for s in EVERY if s not in WAITING])
def test_the_time_of_the_disk_is_not_the_clients(traced: Traced) -> None:
    """It takes longer to open the file than a client may be silent, and the reply is more than the buffers hold."""
    server, trace = traced("openat2", "-t", "1", inject="openat2:delay_enter=1500000")
    length = 8_000_000
    with server.download("/big.bin", f"Range: bytes=0-{length - 1}", window=65536) as c:
        time.sleep(0.2)  # the buffers are full
        assert c.read_exactly(length) == noise(length)
        if server.target.name != "01-iterative":  # which keeps nobody
            assert c.hears_nothing(0.05)  # to read again waits, too
            assert c.ask().body == HELLO
    assert trace.count("openat2") > 0


@contract("idle-time-out", servers=[s for s in EVERY if s != "01-iterative"])
def test_a_time_out_does_not_cut_the_last_reply(start: Start) -> None:
    """Not all of it has arrived when the time is up and another request comes. (01 keeps no client.)"""
    server = start("-t", "1")
    with server.connect(receive_buffer=4096) as c:
        c.send(request("/medium.bin", "Range: bytes=0-59999"))
        assert c.read_head().status == 206
        time.sleep(1.5)
        c.send(ASK)
        time.sleep(0.1)
        assert c.read_exactly(60_000) == noise(300_007)[:60_000]


@contract("idle-time-out", "leaks")
def test_a_last_reply_that_never_arrives(impatient: Server) -> None:
    """The client reads none of it. It is waited for, but not for ever."""
    c = impatient.connect(receive_buffer=4096)
    c.send(request("/medium.bin", "Range: bytes=0-59999"))
    assert c.read_head().status == 206
    assert impatient.settles()
    assert impatient.serves()


@contract("idle-time-out", "concurrency")
def test_others_are_served_while_some_are_waited_for(impatient: Server) -> None:
    """Those with the higher descriptors are not forgotten over what goes on at the lower ones."""
    one_by_one, began = impatient.target.model.capacity == 1, time.monotonic()
    leaving = [impatient.connect() for _ in range(3)]
    silent = [impatient.connect() for _ in range(5)]
    asking = impatient.connect(limit=0.8 if one_by_one else 0)
    assert asking.ask(LAST).body == HELLO
    heard_nothing = all(c.hears_nothing(0.02) for c in silent)  # until they have been accepted
    assert heard_nothing or time.monotonic() - began > 0.9
    for c in leaving:
        c.close()
    time.sleep(0.1)
    assert impatient.serves()
    for c in silent:
        c.expect_gone()
    assert impatient.settles()
