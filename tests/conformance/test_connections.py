"""Several requests on one connection, requests in pieces, connections that half-close, and the last
reply: bytes that come while it is on its way, or after it, must not cut it. close() with bytes
unread, and bytes after close(), are answered with a reset (RFC 9112 section 9.6).
"""

from __future__ import annotations

import hashlib
import time

import pytest

from conformance import proc
from conformance.matrix import SANITIZED, contract, kind
from conformance.process import Server, wait_until
from conformance.site import HELLO, OLD_DATE, Site
from conformance.wire import ASK, LAST, Connection, request

pytestmark = kind("model")


def again(c: Connection) -> None:
    """The connection serves one more request."""
    reply = c.ask()
    assert (reply.status, reply.body) == (200, HELLO)


def same(a: bytes, b: bytes) -> bool:
    return hashlib.sha256(a).digest() == hashlib.sha256(b).digest()


# ---- one after the other


KEPT = [
    (ASK, 200),
    (request("/hello.txt", "Connection: TE, Keep-Alive"), 200),
    (request("/empty.txt"), 200),
    (request("/medium.bin"), 200),
    (request("/nothing"), 404),
    (request("/hello.txt", f"If-Modified-Since: {OLD_DATE}"), 304),
    (request("/hello.txt", "Range: bytes=0-1"), 206),
    (request("/hello.txt", "Range: bytes=99-"), 416),
    (request("/hello.txt", 'If-Match: "x"'), 412),
    (request("/sub"), 301),
    (request("/hello.txt", "Content-Length: 0"), 200),
    (request("/hello.txt", method="DELETE"), 405),
]


@contract("keep-alive")
@kind("serving")
def test_keep_alive(server: Server) -> None:
    with server.connect() as c:
        for data, status in KEPT:
            reply = c.ask(data)
            assert reply.status == status, data
            reply.demand_keep_alive()
            again(c)
        assert c.ask(request("/hello.txt", method="HEAD"), "HEAD").status == 200
        again(c)
        c.send(b"\r\n")  # RFC 9112 section 2.2: some clients send one too many
        again(c)


@contract("keep-alive-1.0")
@pytest.mark.parametrize("option", ["Keep-Alive", "foo, keep-alive , bar"])
def test_keep_alive_1_0(server: Server, option: str) -> None:
    """A 1.0 client takes silence for `close`, so the reply has to say that it stays."""
    with server.connect() as c:
        for _ in range(3):
            reply = c.ask(request("/hello.txt", f"Connection: {option}", version="1.0"))
            assert (reply.status, reply.body) == (200, HELLO)
            if "keep-alive" not in (reply.get("Connection") or "").lower():
                c.expect_gone()  # then the next send() fails in every server


@contract("close", "version-1.0")
@kind("serving")
def test_close(server: Server) -> None:
    """What comes after such a request is not answered."""
    for data in (
        LAST,
        request("/hello.txt", "Connection: foo, Close"),
        request("/hello.txt", "Connection: keep-alive", "Connection: close"),
        request("/hello.txt", version="1.0"),
        request("/nothing", "Connection: close"),
        request("/hello.txt", "Connection: close", f"If-Modified-Since: {OLD_DATE}"),
    ):
        for behind in (b"", ASK):
            with server.connect() as c:
                c.send(data + behind)
                assert not c.read_reply().keeps_alive, data
                c.expect_end()
    with server.connect() as c:  # the field tells the truth
        if c.ask().keeps_alive:
            again(c)
        else:
            c.expect_end()


@contract("keep-alive", "head")
def test_a_head_alone_does_not_wait_for_a_body(server: Server) -> None:
    """Whoever told the kernel that more would follow has its reply held back for 200 ms."""
    with server.connect() as c:

        def soonest(method: str) -> float:
            waits = []
            for _ in range(10):
                begin = time.monotonic()
                assert c.ask(request("/hello.txt", method=method), method).status == 200
                waits.append(time.monotonic() - begin)
            return min(waits)

        assert soonest("HEAD") < 50 * soonest("GET")


# ---- several at once


@contract("pipelining", "head")
@kind("serving")
def test_ten_requests_in_one_write(server: Server, docroot: Site) -> None:
    paths = ["/hello.txt", "/one.bin", "/nothing", "/empty.txt", "/sub/"] * 2
    replies = [server.get(path) for path in paths]
    medium = (docroot.root / "medium.bin").read_bytes()
    with server.connect() as c:
        c.send(b"".join(request(path) for path in paths))
        for alone in replies:
            reply = c.read_reply()
            assert (reply.status, reply.body) == (alone.status, alone.body)
        c.send(
            request("/medium.bin", method="HEAD")
            + request("/medium.bin")
            + request("/hello.txt", "Range: bytes=1-2")
            + request("/hello.txt", f"If-Modified-Since: {OLD_DATE}")
            + LAST
        )
        assert c.read_reply("HEAD").need("Content-Length") == str(len(medium))
        assert c.read_reply().body == medium
        assert c.read_reply().body == HELLO[1:3]
        assert c.read_reply().status == 304
        assert c.read_reply().body == HELLO
        c.expect_end()


@contract("pipelining", "400", "half-close")
def test_pipelined_and_then_the_end(server: Server) -> None:
    """What comes before a bad request, or before the end of the client, is answered."""
    for behind, statuses in ((b"GET\r\n\r\n" + ASK, [200, 200, 400]), (b"", [200, 200])):
        with server.connect() as c:
            c.send(ASK * 2 + behind)
            if not behind:
                c.finish_sending()
            assert [c.read_reply().status for _ in statuses] == statuses
            c.expect_end()


@contract("pipelining", "431")
def test_a_long_head_behind_another(server: Server) -> None:
    """It begins in the middle of the buffer, which it fills, or all but."""
    for size in range(8100, 8180, 3):
        head = request("/hello.txt", f"X: {'v' * size}")
        with server.connect() as c:
            c.send(request("/one.bin") + head)
            assert c.read_reply().body == b"\0"
            reply = c.read_reply()
            assert reply.status == (200 if len(head) <= 8192 else 431), len(head)


@contract("pipelining", "memory", "leaks")
def test_ten_thousand_requests_on_one_connection(server: Server) -> None:
    """Memory, descriptors and children as after the first hundred."""
    chunk, rounds = 1000, 3 if server.target.variant in SANITIZED else 10
    with server.connect() as c:
        c.send(ASK)
        length = len(c.read_head().head) + len(c.read_exactly(len(HELLO)))
        c.exchange(ASK * 100, 100 * length)
        before = held(server)
        for _ in range(rounds):
            replies = c.exchange(ASK * chunk, chunk * length)
            assert replies.count(b"HTTP/1.1 200 OK\r\n") == chunk
            assert replies.endswith(HELLO)
        # the file of the last reply may still be open, before and after
        assert wait_until(lambda: held(server)[0] <= before[0], server.patience.limit)
        after = held(server)
        again(c)
    assert after[1] == before[1]
    # a sanitizer keeps freed memory aside for a while
    margin_kib = 64 * 1024 if server.target.variant in SANITIZED else 1024
    assert after[2] <= before[2] + margin_kib


def held(server: Server) -> tuple[int, int, int]:
    """Descriptors, processes and KiB of memory of the server and its children."""
    pids = server.processes()
    return sum(len(proc.descriptors(pid)) for pid in pids), len(pids), server.memory_kib()


@contract("memory", "leaks", "survives")
def test_a_thousand_connections_one_after_the_other(server: Server) -> None:
    count = 300 if server.target.variant in SANITIZED or server.target.model.under_inetd else 1000
    for _ in range(50):
        assert server.serves()
    assert server.settles()
    before = server.memory_kib()
    for _ in range(count):
        assert server.serves()
    assert server.settles()
    margin_kib = 32 * 1024 if server.target.variant in SANITIZED else 512
    assert server.memory_kib() <= before + margin_kib


# ---- in pieces


@contract("split", "close")
@kind("serving")
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


@contract("pipelining", "split")
def test_two_requests_cut_at_every_byte(server: Server) -> None:
    both = request("/hello.txt", host="a") + request("/one.bin", "Connection: close", host="b")
    for cut in range(1, len(both)):
        with server.connect() as c:
            c.send(both[:cut])
            time.sleep(0.001)
            c.send(both[cut:])
            assert c.read_reply().body == HELLO, f"cut after {cut} bytes"
            assert c.read_reply().body == b"\0", f"cut after {cut} bytes"
            c.expect_end()


# ---- the end


@contract("half-close", "any-length")
def test_half_close(server: Server, docroot: Site) -> None:
    for path in ("/hello.txt", "/big.bin"):
        content = (docroot.root / path[1:]).read_bytes()
        with server.connect() as c:
            c.send(request(path))
            c.finish_sending()
            reply = c.read_reply()
            assert reply.status == 200
            assert same(reply.body, content)
            c.expect_end()


@contract("half-close", "idle-time-out")
def test_half_close_before_the_request_is_complete(server: Server) -> None:
    """No more can come, so there is nothing to wait for: not even the time-out (23 s here)."""
    for start_of_request in (b"", b"GET /hello.txt HT", ASK[:-2]):
        with server.connect() as c:
            c.send(start_of_request)
            c.finish_sending()
            c.expect_gone()
    assert server.settles()


@contract("drain", "close", "leaks")
def test_bytes_that_come_during_the_last_reply(server: Server, docroot: Site) -> None:
    for path in ("/medium.bin", "/big.bin"):
        content = (docroot.root / path[1:]).read_bytes()
        with server.download(path, "Connection: close") as c:
            assert same(c.read_while_sending(len(content)), content), c.transcript()
        assert server.settles()
    # half-closed by us, acknowledged by him: his process may keep its end for hours
    with server.connect() as c:
        assert c.ask(LAST).body == HELLO
        c.expect_end()
        assert server.settles()
