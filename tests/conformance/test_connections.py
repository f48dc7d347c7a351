"""Several requests on one connection, requests in pieces, connections that half-close."""

from __future__ import annotations

import hashlib
import time

import pytest

from conformance import proc
from conformance.contract import contract
from conformance.process import Server, wait_until
from conformance.servers import SANITIZED
from conformance.site import HELLO, OLD_DATE, Site
from conformance.wire import Connection, request

ASK = request("/hello.txt")
LAST = request("/hello.txt", "Connection: close")


def again(c: Connection) -> None:
    """The connection serves one more request."""
    c.send(ASK)
    reply = c.read_reply()
    assert (reply.status, reply.body) == (200, HELLO)


@contract("keep-alive")
@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/hello.txt", (), 200),
        ("/hello.txt", ("Connection: keep-alive",), 200),
        ("/hello.txt", ("Connection: TE, Keep-Alive",), 200),
        ("/empty.txt", (), 200),
        ("/medium.bin", (), 200),
        ("/nothing", (), 404),
        ("/hello.txt", (f"If-Modified-Since: {OLD_DATE}",), 304),
        ("/hello.txt", ("Range: bytes=0-1",), 206),
        ("/hello.txt", ("Range: bytes=99-",), 416),
        ("/hello.txt", ("Content-Length: 0",), 200),
    ],
)
def test_keep_alive(server: Server, path: str, fields: tuple[str, ...], status: int) -> None:
    with server.connect() as c:
        c.send(request(path, *fields))
        reply = c.read_reply()
        assert reply.status == status
        reply.demand_keep_alive()
        again(c)
        again(c)


@contract("keep-alive", "head")
def test_keep_alive_after_head(server: Server) -> None:
    with server.connect() as c:
        c.send(request("/hello.txt", method="HEAD"))
        assert c.read_reply("HEAD").status == 200
        again(c)


@contract("keep-alive")
def test_an_empty_line_between_requests(server: Server) -> None:
    """RFC 9112 section 2.2: some clients send one too many."""
    with server.connect() as c:
        again(c)
        c.send(b"\r\n")
        again(c)


@contract("keep-alive-1.0")
@pytest.mark.parametrize("option", ["keep-alive", "Keep-Alive", "foo, keep-alive , bar"])
def test_keep_alive_1_0(server: Server, option: str) -> None:
    """A 1.0 client takes silence for `close`, so the reply has to say that it stays."""
    with server.connect() as c:
        for _ in range(3):
            c.send(request("/hello.txt", f"Connection: {option}", version="1.0"))
            reply = c.read_reply()
            assert (reply.status, reply.body) == (200, HELLO)
            if "keep-alive" not in (reply.get("Connection") or "").lower():
                c.expect_gone()  # then the next send() fails in every server


@contract("close", "version-1.0")
@pytest.mark.parametrize(
    "data",
    [
        LAST,
        request("/hello.txt", "Connection: foo, Close"),
        request("/hello.txt", "Connection: keep-alive, close"),
        request("/hello.txt", "Connection: keep-alive", "Connection: close"),
        request("/hello.txt", version="1.0"),
        request("/hello.txt", "Connection: close", version="1.0"),
        request("/nothing", "Connection: close"),
        request("/hello.txt", "Connection: close", f"If-Modified-Since: {OLD_DATE}"),
    ],
)
def test_close(server: Server, data: bytes) -> None:
    with server.connect() as c:
        c.send(data)
        assert not c.read_reply().keeps_alive or b"HTTP/1.0" in data
        c.expect_end()


@contract("close")
def test_the_connection_field_tells_the_truth(server: Server) -> None:
    with server.connect() as c:
        c.send(ASK)
        if c.read_reply().keeps_alive:
            again(c)
        else:
            c.expect_end()


@contract("close")
def test_what_comes_after_close_is_not_answered(server: Server) -> None:
    with server.connect() as c:
        c.send(LAST + ASK)
        assert c.read_reply().body == HELLO
        c.expect_end()


@contract("keep-alive", "head")
def test_a_head_alone_does_not_wait_for_a_body(server: Server) -> None:
    """Whoever told the kernel that more would follow has its reply held back for 200 ms."""
    with server.connect() as c:

        def soonest(method: str) -> float:
            waits = []
            for _ in range(10):
                begin = time.monotonic()
                c.send(request("/hello.txt", method=method))
                assert c.read_reply(method).status == 200
                waits.append(time.monotonic() - begin)
            return min(waits)

        assert soonest("HEAD") < 50 * soonest("GET")


@contract("pipelining")
def test_ten_requests_in_one_write(server: Server) -> None:
    paths = ["/hello.txt", "/one.bin", "/nothing", "/empty.txt", "/sub/"] * 2
    replies = [server.get(path) for path in paths]
    with server.connect() as c:
        c.send(b"".join(request(path) for path in paths))
        for alone in replies:
            reply = c.read_reply()
            assert (reply.status, reply.body) == (alone.status, alone.body)
        again(c)


@contract("pipelining", "head")
def test_mixed_methods_and_bodies_in_order(server: Server, docroot: Site) -> None:
    medium = (docroot.root / "medium.bin").read_bytes()
    with server.connect() as c:
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


@contract("pipelining", "400")
def test_requests_before_a_bad_one_are_answered(server: Server) -> None:
    with server.connect() as c:
        c.send(ASK + ASK + b"GET\r\n\r\n" + ASK)
        assert c.read_reply().body == HELLO
        assert c.read_reply().body == HELLO
        assert c.read_reply().status == 400
        c.expect_end()


@contract("pipelining", "half-close")
def test_pipelined_then_half_closed(server: Server) -> None:
    with server.connect() as c:
        c.send(ASK * 3)
        c.finish_sending()
        for _ in range(3):
            assert c.read_reply().body == HELLO
        c.expect_end()


@contract("pipelining", "split")
def test_two_requests_cut_at_every_byte(server: Server) -> None:
    both = request("/hello.txt", host="a") + request("/one.bin", "Connection: close", host="b")
    for cut in range(1, len(both)):
        with server.connect() as c:
            c.send(both[:cut])
            time.sleep(0.001)  # for the server to see the first piece alone
            c.send(both[cut:])
            assert c.read_reply().body == HELLO, f"cut after {cut} bytes"
            assert c.read_reply().body == b"\0", f"cut after {cut} bytes"
            c.expect_end()


@contract("split")
def test_one_request_cut_at_every_byte(server: Server) -> None:
    for cut in range(1, len(LAST)):
        with server.connect() as c:
            c.send(LAST[:cut])
            time.sleep(0.001)
            c.send(LAST[cut:])
            assert c.read_reply().body == HELLO, f"cut after {cut} bytes"


@contract("split")
def test_one_byte_at_a_time(server: Server) -> None:
    with server.connect() as c:
        for byte in LAST:
            c.send(bytes([byte]))
            time.sleep(0.001)
        assert c.read_reply().body == HELLO
        c.expect_end()


@contract("half-close", "any-length")
@pytest.mark.parametrize("path", ["/hello.txt", "/big.bin"])
def test_half_close(server: Server, docroot: Site, path: str) -> None:
    content = (docroot.root / path[1:]).read_bytes()
    with server.connect() as c:
        c.send(request(path))
        c.finish_sending()
        reply = c.read_reply()
        assert reply.status == 200
        assert hashlib.sha256(reply.body).digest() == hashlib.sha256(content).digest()
        c.expect_end()


@contract("half-close", "idle-time-out")
@pytest.mark.parametrize("start_of_request", [b"", b"GET /hello.txt HT", ASK[:-2]])
def test_half_close_before_the_request_is_complete(server: Server, start_of_request: bytes) -> None:
    """No more can come, so there is nothing to wait for: not even the time-out (23 s here)."""
    with server.connect() as c:
        c.send(start_of_request)
        c.finish_sending()
        c.expect_gone()
    assert server.settles()


@contract("pipelining", "memory", "leaks")
def test_ten_thousand_requests_on_one_connection(server: Server) -> None:
    """Memory, descriptors and children as after the first hundred."""
    chunk, rounds = 200, 50
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
