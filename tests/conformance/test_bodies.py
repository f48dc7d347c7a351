"""A request body is never mistaken for the next request, and an early reply survives what still
comes.
"""

from __future__ import annotations

import pytest

from conformance.contract import contract
from conformance.process import Server
from conformance.site import HELLO
from conformance.wire import ConnectionLost, ContractBroken, NotServed, Reply, request

SMUGGLED = request("/one.bin", "X-Smuggled: 1")


def replies_until_close(server: Server, data: bytes) -> list[Reply]:
    """All replies to `data`, after which nothing more is sent. The server may end the connection at
    any point.
    """
    replies = []
    with server.connect() as c:
        c.send(data)
        c.finish_sending()
        while True:
            try:
                replies.append(c.read_reply())
            except NotServed:
                raise
            except ConnectionLost:
                return replies


def chunked(body: bytes) -> bytes:
    return f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"


@contract("body")
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "FOO"])
@pytest.mark.parametrize("framing", ["length", "chunked", "length and keep-alive"])
def test_a_body_is_no_request(server: Server, method: str, framing: str) -> None:
    if framing == "chunked":
        head = request("/hello.txt", "Transfer-Encoding: chunked", method=method)
        body = chunked(SMUGGLED)
    else:
        more = ("Connection: keep-alive",) if "keep-alive" in framing else ()
        head = request("/hello.txt", f"Content-Length: {len(SMUGGLED)}", *more, method=method)
        body = SMUGGLED
    with server.connect() as c:
        c.send(head + body)
        c.finish_sending()
        reply = c.read_reply(method)
        expected = {"GET": (200, 400, 411, 413), "HEAD": (200, 400), "FOO": (501, 400)}
        assert reply.status in expected.get(method, (405, 400))
        c.expect_end()  # a second reply would be the smuggled one


@contract("body")
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_what_follows_a_body_is_a_request_or_nothing(server: Server, framing: str) -> None:
    """A server may read the body and go on, or close; it may not answer what stands in the body."""
    if framing == "chunked":
        first = request("/hello.txt", "Transfer-Encoding: chunked") + chunked(SMUGGLED)
    else:
        first = request("/hello.txt", f"Content-Length: {len(SMUGGLED)}") + SMUGGLED
    replies = replies_until_close(server, first + request("/empty.txt"))
    assert [reply.body for reply in replies] in ([HELLO], [HELLO, b""])


@contract("body")
def test_a_body_that_comes_later(server: Server) -> None:
    with server.connect() as c:
        c.send(request("/hello.txt", f"Content-Length: {len(SMUGGLED)}"))
        reply = c.read_reply()
        c.try_send(SMUGGLED)
        c.finish_sending()
        assert reply.body == HELLO
        rest = c.read_all()
        assert b"HTTP/1.1" not in rest, c.transcript()


@contract("body", "400")
@pytest.mark.parametrize(
    "fields",
    [
        ("Content-Length: -1",),
        ("Content-Length: +5",),
        ("Content-Length: 5 5",),
        ("Content-Length: 0x5",),
        ("Content-Length: 5a",),
        ("Content-Length: 1e3",),
        ("Content-Length:",),
        ("Content-Length: ,",),
        ("Content-Length: 99999999999999999999",),
        ("Content-Length: 18446744073709551616",),
        ("Content-Length: " + "9" * 300,),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: 0", "Content-Length: 70"),
        ("Content-Length: 5, 6",),
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Transfer-Encoding: chunked", "Content-Length: 0"),
        ("Transfer-Encoding: chunked, identity",),
    ],
)
def test_lengths_that_are_none(server: Server, fields: tuple[str, ...]) -> None:
    with server.connect() as c:
        c.send(request("/hello.txt", *fields) + SMUGGLED)
        c.finish_sending()
        assert c.read_reply().status == 400
        c.expect_end()


@contract("body")
@pytest.mark.parametrize(
    "fields",
    [
        ("Content-Length: 70", "Content-Length: 70"),
        ("Content-Length: 70, 70",),
        ("Transfer-Encoding: gzip, chunked",),
    ],
)
def test_framing_that_one_may_refuse_or_understand(server: Server, fields: tuple[str, ...]) -> None:
    replies = replies_until_close(server, request("/hello.txt", *fields) + SMUGGLED)
    assert len(replies) <= 1
    assert replies == [] or replies[0].status in (200, 400, 501)


@contract("body", "version-1.0")
def test_transfer_encoding_in_http_1_0(server: Server) -> None:
    """RFC 9112 section 6.1: treat the message as faulty, and close."""
    head = request(
        "/hello.txt", "Transfer-Encoding: chunked", "Connection: keep-alive", version="1.0"
    )
    assert len(replies_until_close(server, head + chunked(SMUGGLED))) <= 1


@contract("body", "405")
@pytest.mark.parametrize("expect", ["100-continue", "something else"])
def test_expect_is_answered_before_the_body(server: Server, expect: str) -> None:
    """The client waits for 100 or for the final status, and sends no body before that."""
    with server.connect() as c:
        c.send(request("/", f"Expect: {expect}", "Content-Length: 5", method="POST"))
        assert c.read_reply().status in (405, 417)


@contract("drain", "405", "body")
@pytest.mark.parametrize("size", [65_536, 10_000_000])
@pytest.mark.parametrize("kind", ["POST", "PUT with chunks", "FOO", "GET"])
def test_the_reply_survives_a_body_still_on_its_way(server: Server, kind: str, size: int) -> None:
    """close() with bytes unread resets the connection, and the reset overtakes the reply."""
    method = kind.split()[0]
    if "chunks" in kind:
        head = request("/hello.txt", "Transfer-Encoding: chunked", method=method)
        body = chunked(b"b" * size)
    else:
        head = request("/hello.txt", f"Content-Length: {size}", method=method)
        body = b"b" * size
    expected = {"GET": 200, "FOO": 501}.get(method, 405)
    with server.connect() as c:
        c.send(head)
        everything_taken = c.try_send(body)
        reply = c.read_reply()
        assert reply.status == expected
        assert everything_taken or not reply.keeps_alive
    assert server.serves()


@contract("drain", "survives")
def test_draining_is_bounded(server: Server) -> None:
    """A client that never stops sending is not listened to for ever."""
    with server.connect() as c:
        c.send(b"GET\r\n\r\n")
        junk = b"j" * 65_536
        deadline_rounds = 200_000
        for _ in range(deadline_rounds):
            if not c.try_send(junk):
                break
        else:
            raise ContractBroken(f"still listening after {deadline_rounds} x 64 KiB")
    assert server.settles()
