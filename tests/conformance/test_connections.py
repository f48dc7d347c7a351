"""Several requests on one connection, requests in pieces, connections that half-close, and the last
reply: bytes that come while it is on its way, or after it, must not cut it. close() with bytes
unread, and bytes after close(), are answered with a reset (RFC 9112 section 9.6).
"""

import itertools
import statistics
import time
from contextlib import nullcontext

from tests.conformance import proc
from tests.conformance.matrix import EVERY, LISTENING, SANITIZED, contract, kind
from tests.conformance.process import Server, wait_until
from tests.conformance.programs import Traced
from tests.conformance.site import HELLO, OLD_DATE, Site
from tests.conformance.wire import ASK, LAST, Connection, request

pytestmark = kind("model")
#: sendfile() has no word for "the end follows", and the ring cannot make sure that it leaves.
FIN_JOINED = [s for s in EVERY if s not in ("11-sendfile", "13-uring", "14-owfat")]
SINCE = f"If-Modified-Since: {OLD_DATE}"
KEPT = {
    request("/hello.txt", "Connection: TE, Keep-Alive"): 200,
    request("/hello.txt", "Connection: keep-alive", version="1.0"): 200,
    request("/empty.txt"): 200,
    request("/medium.bin"): 200,
    request("/nothing"): 404,
    request("/hello.txt", SINCE): 304,
    request("/hello.txt", "Range: bytes=0-1"): 206,
    request("/hello.txt", "Content-Length: 0"): 200,
    request("/hello.txt", method="DELETE"): 405,
    request("/hello.txt", method="HEAD"): 200,
    b"\r\n" + ASK: 200,  # RFC 9112 section 2.2: some clients send one too many
}


@contract("keep-alive", "keep-alive-1.0", of="serving")
def test_keep_alive(server: Server) -> None:
    """A 1.0 client takes silence for `close`, so the reply has to say that it stays."""
    with server.connect() as c:
        for data, status in KEPT.items():
            reply = c.ask(data, "HEAD" if data.startswith(b"HEAD") else "GET")
            assert reply.status == status, data
            reply.demand_keep_alive()
            assert b"/1.0" not in data or reply.get("Connection") == "keep-alive"
            assert c.ask().body == HELLO, data


@contract("keep-alive", "head")
def test_a_head_alone_does_not_wait_for_a_body(server: Server) -> None:
    """Whoever told the kernel that more would follow has its reply held back for 200 ms. Others may be late, too."""
    with server.connect() as c:

        def soonest(method: str) -> float:
            waits = []
            for _ in range(10):
                begin = time.monotonic()
                assert c.ask(request("/hello.txt", method=method), method).status == 200
                waits.append(time.monotonic() - begin)
            return min(waits)

        assert soonest("HEAD") < max(0.15, 50 * soonest("GET"))


@contract("pipelining", "head", of="serving")
def test_ten_requests_in_one_write(server: Server, docroot: Site) -> None:
    medium = (docroot.root / "medium.bin").read_bytes()
    expected = {
        request("/hello.txt"): (200, HELLO),
        request("/medium.bin", method="HEAD"): (200, b""),
        request("/medium.bin"): (200, medium),
        request("/one.bin"): (200, b"\0"),
        request("/nothing"): (404, server.get("/nothing").body),
        request("/empty.txt"): (200, b""),
        request("/hello.txt", "Range: bytes=1-2"): (206, HELLO[1:3]),
        request("/hello.txt", SINCE): (304, b""),
        request("/sub/"): (200, b"sub index\n"),
        LAST: (200, HELLO),
    }
    with server.connect() as c:
        c.send(b"".join(expected))
        for data, status_and_body in expected.items():
            reply = c.read_reply("HEAD" if data.startswith(b"HEAD") else "GET")
            assert (reply.status, reply.body) == status_and_body, data
        c.expect_end()


@contract("pipelining")
def test_small_replies_in_a_row(server: Server) -> None:
    """Each is one packet, and none waits until the client has acknowledged the one before it.

    With Nagle's algorithm the second would wait for that, and the client delays it by 40 ms: not at
    the beginning of a connection, hence the requests that come first.
    """
    with server.connect() as c:
        packets = []
        for _ in range(30):
            before = c.data_packets()
            c.ask()
            packets.append(c.data_packets() - before)
        waits: dict[int, list[float]] = {1: [], 3: []}
        for count in (1, 3) * 15:
            begin = time.monotonic()
            c.send(ASK * count)
            for _ in range(count):
                assert c.read_reply().body == HELLO
            waits[count].append(time.monotonic() - begin)
    assert min(packets) == 1
    assert min(waits[3]) < 5 * statistics.median(waits[1])  # the delay would be in each of them


@contract("pipelining", "memory", "leaks")
def test_ten_thousand_requests_on_one_connection(server: Server) -> None:
    """Memory, descriptors and children as after the first hundred."""
    sanitized = server.target.variant in SANITIZED

    def held() -> tuple[int, int, int]:
        pids = server.processes()
        return sum(len(proc.descriptors(pid)) for pid in pids), len(pids), server.memory_kib()

    with server.connect() as c:
        length = len(c.ask().head) + len(HELLO)
        c.exchange(ASK * 100, 100 * length)
        before = held()
        for _ in range(3 if sanitized else 10):
            replies = c.exchange(ASK * 1000, 1000 * length)
            assert replies.count(b"HTTP/1.1 200 OK\r\n") == 1000
            assert replies.endswith(HELLO)
        # the file of the last reply may still be open, before and after
        assert wait_until(lambda: held()[0] <= before[0], server.patience.limit)
        after = held()
    assert after[1] == before[1]
    # a sanitizer keeps freed memory aside for a while
    assert after[2] <= before[2] + (64 * 1024 if sanitized else 1024)


@contract("memory", "leaks", "survives")
def test_a_thousand_connections_one_after_the_other(server: Server) -> None:
    """Their heads are long: one that is kept behind its request would show."""
    sanitized = server.target.variant in SANITIZED
    memory = []
    for count in (50, 300 if sanitized or server.target.model.under_inetd else 1000):
        for _ in range(count):
            assert server.get("/hello.txt", f"X: {'x' * 4000}").body == HELLO
        assert server.settles()
        memory.append(server.memory_kib())
    assert memory[1] <= memory[0] + (32 * 1024 if sanitized else 512)


@contract("split", "close", of="serving")
def test_one_request_cut_at_every_byte(server: Server) -> None:
    for cut in range(1, len(LAST)):
        with server.connect() as c:
            c.send(LAST[:cut])
            time.sleep(0.001)  # for the server to see the first piece alone
            assert c.ask(LAST[cut:]).body == HELLO, f"cut after {cut} bytes"
    with server.connect() as c:
        for byte in LAST:
            c.send(bytes([byte]))
            time.sleep(0.001)
        assert c.read_reply().body == HELLO
        c.expect_end()


@contract("half-close", "any-length", "idle-time-out")
def test_half_close(server: Server, docroot: Site) -> None:
    """With the request, or before it is complete: then nothing is waited for, not even -t."""

    def connect_and_send(data: bytes, held: bool) -> Connection:
        c = server.connect()
        if held:
            c.send(b"\r\n")
            assert c.hears_nothing(0.05)  # it has been accepted
        with server.held() if held else nullcontext():
            c.send(data)
            c.finish_sending()
        return c

    for held in (False, True):
        for path in ("/hello.txt", "/big.bin"):
            with connect_and_send(request(path), held) as c:
                assert c.read_reply().body == (docroot.root / path[1:]).read_bytes(), path
                c.expect_end()
        for start_of_request in (b"", b"GET /hello.txt HT", ASK[:-2]):
            with connect_and_send(start_of_request, held) as c:
                c.expect_gone()
    assert server.settles()


@contract("drain", "close", "leaks")
def test_bytes_that_come_during_the_last_reply(server: Server, docroot: Site) -> None:
    for path in ("/medium.bin", "/big.bin"):
        content = (docroot.root / path[1:]).read_bytes()
        with server.download(path, "Connection: close", window=65536) as c:
            assert c.read_while_sending(len(content)) == content, c.transcript()
        assert server.settles()
    # half-closed by us, acknowledged by him: his process may keep its end for hours
    with server.connect() as c:
        assert c.ask(LAST).body == HELLO
        c.expect_end()
        assert server.settles()


@contract("close", "mechanism", servers=LISTENING)
def test_who_says_close_is_not_waited_for(traced: Traced) -> None:
    """Nothing more can come, so no call asks for it, nor whether the short reply has arrived. What
    is not asked for is followed by a look, as it was for all: the trace can see it.
    """
    calls = "recvfrom,ioctl,sendto,sendmsg,writev,sendfile"
    server, trace = traced(calls, operations=True)
    after_reply = []
    for ask in (LAST, request("/hello.txt", version="1.0"), LAST + b"more"):
        before = len(trace.calls()) if trace.output.exists() else 0
        with server.connect() as c:
            assert c.ask(ask).body == HELLO
            c.expect_end()
        assert server.settles()
        names = [name for _, name, _ in trace.calls()[before:]]
        sent = next(i for i, name in enumerate(names) if name.startswith("send"))
        after_reply.append({"recvfrom", "ioctl", "URING_CMD"}.intersection(names[sent:]))
    assert after_reply[:2] == [set(), set()]
    assert after_reply[2]  # the client did not keep its word


@contract("close", "mechanism", servers=FIN_JOINED)
def test_the_end_shares_the_packet_of_a_short_reply(server: Server) -> None:
    """The least of several counts: three packets come, the handshake's, the acknowledgement of the
    request, and reply and end together.
    """
    packets = []
    for _ in range(10):
        with server.connect() as c:
            assert c.ask(LAST).body == HELLO
            c.expect_end()
            packets.append(c.packets())
    assert min(packets) <= 3


@contract("drain", "close")
def test_bytes_behind_a_request_that_was_the_last(server: Server) -> None:
    """They are against the rules, and the reply arrives all the same, a short one and a long one:
    sent together, or behind it, before the reply or in the middle of it.
    """
    for path, gap in itertools.product(("/hello.txt", "/big.bin"), (None, 0, 0.0002, 0.002)):
        with server.connect() as c:
            ask = request(path, "Connection: close")
            c.send(ask if gap is not None else ask + ASK)
            if gap is not None:
                time.sleep(gap)
                c.try_send(ASK)
            reply = c.read_reply()
            assert len(reply.body) == int(reply.get("Content-Length") or 0), (path, gap)


@contract("pipelining", "drain", "close")
def test_bytes_behind_a_short_last_reply_that_a_long_one_goes_before(server: Server, docroot: Site) -> None:
    """The last is short, and much is under way all the same: the client has room for little of the first."""
    with server.connect(receive_buffer=4096) as c:
        c.send(request("/medium.bin", "Range: bytes=0-39999") + LAST)
        time.sleep(0.3)  # for the server to hand both to its kernel
        c.try_send(ASK)
        time.sleep(0.1)  # for what the kernel answers to that
        assert c.read_reply().body == (docroot.root / "medium.bin").read_bytes()[:40_000]
        assert c.read_reply().body == HELLO


@contract("drain", "close", servers=[s for s in FIN_JOINED if s in LISTENING])
def test_bytes_between_a_last_reply_and_its_end(traced: Traced) -> None:
    """The kernel holds the reply for the FIN; close() with bytes unread would lose it."""
    server, _ = traced("sendto,sendmsg", inject="sendto,sendmsg:delay_exit=100000")
    with server.connect() as c:
        c.send(LAST)
        time.sleep(0.05)
        c.try_send(ASK)
        assert c.read_reply().body == HELLO


@contract("drain", "body")
def test_a_body_that_comes_after_the_last_reply(server: Server) -> None:
    """It was announced, so for a second it is read, though nobody wants it: no reset."""
    for _ in range(3):
        with server.connect() as c:
            begin = time.monotonic()
            ask = request("/hello.txt", "Content-Length: 9", "Connection: close")
            assert c.ask(ask).body == HELLO
            time.sleep(0.3)  # until it is known that the reply has arrived
            c.try_send(b"b")
            time.sleep(0.1)
            taken = c.try_send(b"b")
            assert taken or time.monotonic() - begin > 0.9, c.transcript()
    with server.connect() as c:  # it does not come, and the client stays: for a second, not for -t
        assert c.ask(ask).body == HELLO
        assert server.settles()
