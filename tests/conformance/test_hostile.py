"""Clients that go away at every point, send what they should not, or do not read, and files that
shrink, grow or vanish while they are sent: all of it costs the server nothing.
"""

import os
import time
from pathlib import Path

import pytest

from tests.conformance.matrix import EVERY, RINGS, SHAPES, contract, kind
from tests.conformance.process import Server, wait_until
from tests.conformance.programs import Start, Traced
from tests.conformance.site import HELLO, Site, bigger_than_socket_buffers, noise
from tests.conformance.wire import ASK, LAST, Connection, ConnectionLost, ContractBroken, request

pytestmark = kind("model")
BIG = request("/big.bin")

HOW = pytest.mark.parametrize("how", ["closed", "reset", "half-closed, then reset"])


def leave(c: Connection, how: str) -> None:
    if how.startswith("half-closed"):
        c.finish_sending()
        time.sleep(0.002)
    c.close() if how == "closed" else c.reset()


def still_fine(server: Server) -> bool:
    return server.serves() and server.settles()


@contract("survives", "sigpipe", "leaks", "drain")
@HOW
def test_at_every_point_of_an_exchange(server: Server, how: str) -> None:
    """Before the request is complete, before the reply is read, in the middle of a body that is
    refused, between two requests, and before they are accepted: accept() may fail with
    ECONNABORTED, or give a socket that is dead.
    """
    points = (0, 1, 3, 5, 14, 22, 24, 30, len(ASK) - 3, len(ASK) - 2, len(ASK) - 1)
    for data in (*(ASK[:point] for point in points), ASK, BIG, ASK * 20, ASK + BIG + ASK):
        for pause in (0.0, 0.001, 0.003, 0.01):
            c = server.connect(receive_buffer=4096)
            c.send(data)
            time.sleep(pause)
            leave(c, how)
    assert still_fine(server)
    refused = request("/", "Content-Length: 100000", method="POST")
    for data in (refused, refused + b"b", refused + b"b" * 10_000, ASK):
        c = server.connect()
        c.ask(data)
        leave(c, how)
    for _ in range(40):
        leave(server.connect(), how if how == "closed" else "reset")
    assert still_fine(server)


@contract("survives", "sigpipe", "leaks")
@HOW
def test_in_the_middle_of_the_reply(server: Server, how: str) -> None:
    for taken in (1, 10, 1000, 100_000, 5_000_000):
        c = server.connect(receive_buffer=65536)
        c.send(BIG)
        c.read_exactly(taken)
        leave(c, how)
        assert still_fine(server), f"after {taken} bytes"


START = b"GET /hello.txt HTTP/1.1\r\nHost: x\r\n"


@contract("survives", "drain", "400", "414", "431")
def test_heads_without_measure(server: Server) -> None:
    """The reply arrives although the client sends all of it before it reads."""
    for size in (9_000, 1 << 20):
        for data, status in (
            (b"GET /" + b"a" * size, 414),
            (START + b"X: " + b"v" * size, 431),
            (START + b"X: v\r\n" * (size // 6) + b"\r\n", 431),
            (b"this is not a request\r\n" * (size // 23), 400),
            (bytes(size), 400),
        ):
            with server.connect() as c:
                reply = c.ask(data)
                assert (reply.status, reply.keeps_alive) == (status, False), (size, data[:40])
                c.expect_end()
    with server.connect() as c:  # empty lines are no error, and then nothing came
        c.send(b"\r\n" * 32_768)
        c.finish_sending()
        c.read_all()
        assert c.ended == "closed", c.transcript()
    assert server.serves()


@contract("drain", "405", "body")
def test_the_reply_survives_a_body_still_on_its_way(server: Server) -> None:
    """close() with bytes unread resets the connection, and the reset overtakes the reply."""
    for size in (65_536, 10_000_000, 10_000_000, 10_000_000):  # whether it overtakes is luck
        body = b"b" * size
        chunks = f"{size:x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
        for method, status in (("POST", 405), ("PUT", 405), ("FOO", 501), ("GET", 200)):
            chunked = method == "PUT"
            field = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {size}"
            with server.connect() as c:
                c.send(request("/hello.txt", field, method=method))
                everything_taken = c.try_send(chunks if chunked else body)
                reply = c.read_reply()
                assert reply.status == status, (method, size)
                assert everything_taken or not reply.keeps_alive
    assert server.serves()


@contract("drain", "survives", "leaks")
def test_draining_is_bounded(server: Server) -> None:
    """A client that never stops sending is not listened to for ever."""
    with server.connect() as c:
        c.send(b"GET\r\n\r\n")
        rounds = 200_000
        if all(c.try_send(b"j" * 65_536) for _ in range(rounds)):
            raise ContractBroken(f"still listening after {rounds} x 64 KiB")
    assert server.settles()


def unsent(server: Server) -> int:
    """The most bytes in a send queue of its connections (tx_queue of /proc/net/tcp)."""
    port = f":{server.address[1]:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()  # thousands, of connections that are over
    rows = [line.split() for line in lines if port in line]
    ours = [row for row in rows if row[1].endswith(port)]
    return max(int(row[4].split(":")[0], 16) for row in ours if row[3] != "0A")


@contract("memory", servers=("02-inetd", *SHAPES))
def test_who_does_not_read_has_little_of_the_kernels_memory(server: Server, docroot: Site) -> None:
    """The limit, what the client's own kernel takes at first, and the last portion added."""
    content = (docroot.root / "big.bin").read_bytes()
    with server.download() as c:
        assert wait_until(lambda: unsent(server) > 0, server.patience.limit)
        c.hears_nothing(server.patience.silence)
        assert unsent(server) <= 512 * 1024
        assert c.read_exactly(len(content)) == content  # who reads after all gets everything


@contract("memory", "mechanism", servers=(name for name in EVERY if name not in RINGS))
def test_the_limit_is_lifted_for_who_reads(traced: Traced) -> None:
    for options in ((), ("-s", "65536")):
        server, trace = traced("setsockopt", *options)
        server.get("/big.bin")
        lifted = trace.has(
            lambda _, t=trace: any("NOTSENT_LOWAT, [0]" in line for line in t.lines()),  # type: ignore[misc]
            server.patience.silence if options else server.patience.limit,
        )
        assert lifted == (options == ())
        limit = ("", "131072", *options)[-1]
        assert any(f"NOTSENT_LOWAT, [{limit}]" in line for line in trace.lines())
        if server.target.name != "15-slashdot":  # the others have no such option
            break


@contract("memory", "mechanism", servers=RINGS)
def test_a_ring_lifts_the_limit_for_who_reads(server: Server) -> None:
    """No call shows that. Who has read a megabyte and then stops has more in the kernel than the limit allows."""
    if tuple(int(n) for n in os.uname().release.split(".")[:2]) < (6, 7):
        pytest.skip("before Linux 6.7 a ring cannot")
    with server.download() as c:
        c.read_exactly(2 << 20)
        assert wait_until(lambda: unsent(server) > 512 * 1024, server.patience.limit)


@contract("pipelining", "survives", "outside", servers=("12-aio", "15-slashdot"))
def test_a_request_that_comes_while_a_file_is_looked_up(traced: Traced) -> None:
    """By a thread, one component after the other and slowly, where there is no openat2()."""
    slow = ("openat2:error=ENOSYS", "openat:delay_enter=100000")
    server, _ = traced("openat2,openat", inject=slow)
    for _ in range(2):
        with server.connect() as c:
            c.send(ASK)
            time.sleep(0.03)
            assert c.ask(LAST).body == c.read_reply().body == HELLO
            c.expect_end()
    assert server.get("/../secret.txt").status == 403


SIZE = bigger_than_socket_buffers()  #: a server cannot have sent all of it


@pytest.fixture
def file_server(start: Start, own_site: Site) -> Server:
    own_site.write("file.bin", noise(SIZE))
    return start(root=own_site.root)


@contract("file-changes", "survives")
def test_a_file_that_shrinks(file_server: Server, own_site: Site) -> None:
    """The promised length cannot be kept, and only the end of the connection can say so. mmap()
    would mean SIGBUS.
    """
    for left in (100_000, 4096, 1, 0):
        own_site.write("file.bin", noise(SIZE))
        if file_server.target.model.keeps_files:
            time.sleep(file_server.target.model.keeps_files + 0.1)
        with file_server.download("/file.bin", window=65536) as c:
            os.truncate(own_site.root / "file.bin", left)
            with pytest.raises(ConnectionLost):
                c.read_exactly(SIZE)
        assert file_server.serves(), f"{left} bytes left"


@contract("file-changes", "any-length", "content-length")
def test_a_file_that_is_open_is_sent_as_it_was(file_server: Server, own_site: Site) -> None:
    """It grows, is replaced, vanishes: what was promised is sent, and not a byte more."""
    path = own_site.root / "file.bin"

    def grow() -> None:
        with path.open("ab") as file:
            file.write(b"more" * 1000)

    def replace() -> None:
        os.replace(own_site.write("new.bin", b"new"), path)

    for change in (grow, replace, path.unlink):
        own_site.write("file.bin", noise(SIZE))
        with file_server.download("/file.bin", window=65536) as c:
            change()
            assert c.read_exactly(SIZE) == noise(SIZE)
            c.try_send(request("/hello.txt", "Connection: close"))
            c.finish_sending()
            rest = c.read_all()
            assert rest == b"" or rest.startswith(b"HTTP/1.1 200 "), c.transcript()
        assert change != replace or file_server.get("/file.bin").body == b"new"
    assert file_server.get("/file.bin").status == 404
