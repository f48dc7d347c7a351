"""Bytes that come while the last reply is on its way, or after it, must not cut it: close() with
bytes unread, and bytes after close(), are answered with a reset (RFC 9112 section 9.6).
"""

from __future__ import annotations

import hashlib
import os
import signal

import pytest

from conformance import proc
from conformance.contract import contract
from conformance.process import Server, wait_until
from conformance.site import HELLO, Site
from conformance.wire import Connection, request

LAST = ("Connection: close",)


def read_while_sending(c: Connection, size: int) -> bytes:
    """Reads `size` bytes of a body, and for every few of them sends one that nobody asked for."""
    body = b""
    while len(body) < size:
        body += c.read_exactly(min(16_384, size - len(body)))
        if not c.try_send(b"x"):
            c.ended = None  # the server is gone; what was acknowledged is here, and can be read
    return body


def same(a: bytes, b: bytes) -> bool:
    return hashlib.sha256(a).digest() == hashlib.sha256(b).digest()


@contract("drain", "close")
@pytest.mark.parametrize("path", ["/medium.bin", "/big.bin"])
def test_bytes_that_come_during_the_last_reply(server: Server, docroot: Site, path: str) -> None:
    content = (docroot.root / path[1:]).read_bytes()
    with server.connect(receive_buffer=4096) as c:
        c.send(request(path, *LAST))
        assert not c.read_head().keeps_alive
        assert same(read_while_sending(c, len(content)), content), c.transcript()
    assert server.settles()


@contract("drain", "stop-in-flight")
def test_bytes_that_come_while_the_server_stops(server: Server, docroot: Site) -> None:
    content = (docroot.root / "big.bin").read_bytes()
    with server.connect(receive_buffer=65_536) as c:
        c.send(request("/big.bin"))
        assert c.read_head().status == 200
        start = c.read_exactly(100_000)
        server.signal(signal.SIGTERM)
        rest = read_while_sending(c, len(content) - len(start))
        assert same(start + rest, content), c.transcript()
    assert server.wait() == 0


@contract("drain", "leaks")
def test_who_has_all_and_does_not_close_is_not_waited_for(server: Server) -> None:
    """Half-closed by us, acknowledged by him: his process may keep its end for hours."""
    with server.connect() as c:
        c.send(request("/hello.txt", *LAST))
        assert c.read_reply().body == HELLO
        c.expect_end()
        assert server.settles()


@contract("stop", "stop-in-flight")
def test_requests_that_had_come_are_answered(server: Server) -> None:
    """The signal finds the server busy with others, and their requests in its sockets."""
    if server.target.model.capacity < 16:
        pytest.skip("serves one client after the other: what the others sent is not its affair")
    clients = [server.connect() for _ in range(12)]
    for c in clients:
        c.send(request("/hello.txt"))
        assert c.read_reply().body == HELLO
    pids = server.processes()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    assert wait_until(lambda: all(map(proc.stopped, pids)), server.patience.limit)
    for c in clients:
        c.send(request("/hello.txt"))
    server.signal(signal.SIGTERM)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    for c in clients:
        assert c.read_reply().body == HELLO
    assert server.wait() == 0
