"""11-sendfile sends in many ways, and all of them send the same bytes; what differs is seen in a
trace and in the packets.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import socket
import struct
import termios
from pathlib import Path

import pytest

from conformance.contract import contract
from conformance.process import wait_until
from conformance.programs import Start
from conformance.site import HELLO, SPARSE_END, SPARSE_SIZE, Site, bigger_than_socket_buffers, noise
from conformance.tracing import ENV, Trace
from conformance.wire import request

HEADS = ("two", "nodelay", "writev", "cork", "more")
BODIES = ("read", "mmap", "sendfile", "splice")
IN_MEMORY = ("read", "mmap")
WAYS = [
    f"{head}+{body}"
    for head, body in itertools.product(HEADS, BODIES)
    if head != "writev" or body in IN_MEMORY
]

#: What a head and a body may be sent by, as a trace shows it. `sendto` of a body comes from memory.
HEAD_CALLS = {
    "two": {"sendto"},
    "nodelay": {"setsockopt", "sendto"},
    "writev": {"writev"},
    "cork": {"setsockopt", "sendto"},
    "more": {"sendto"},
}
BODY_CALLS = {
    "read": {"pread64", "sendto"},
    "mmap": {"mmap", "munmap", "sendto"},
    "sendfile": {"sendfile"},
    "splice": {"splice"},
}
TRACED = sorted({"accept4", "close"}.union(*HEAD_CALLS.values(), *BODY_CALLS.values()))

TCPI_DATA_SEGS_IN = 152  #: offset in struct tcp_info of linux/tcp.h (4.6)

pytestmark = [
    pytest.mark.servers("11-sendfile"),
    pytest.mark.parametrize("way", WAYS),
]


@contract("any-length", "range", "head", "keep-alive", "pipelining", "leaks")
def test_the_same_bytes(start: Start, way: str) -> None:
    server = start("-s", way)
    size = SPARSE_SIZE - len(SPARSE_END) - 5
    with server.connect() as c:
        c.send(
            request("/hello.txt")
            + request("/medium.bin")
            + request("/empty.txt")
            + request("/medium.bin", method="HEAD")
            + request("/medium.bin", "Range: bytes=65535-200000")
            + request("/no-such.txt")
            + request("/sparse.bin", f"Range: bytes={size}-")
            + request("/one.bin")
        )
        medium = noise(300_007)
        assert c.read_reply().body == HELLO
        assert c.read_reply().body == medium
        assert c.read_reply().body == b""
        assert c.read_reply("HEAD").need("Content-Length") == "300007"
        part = c.read_reply()
        assert (part.status, part.body) == (206, medium[65535:200001])
        assert c.read_reply().status == 404
        assert c.read_reply().body == bytes(5) + SPARSE_END  # beyond 4 GiB
        assert c.read_reply().body == b"\0"


@contract("any-length", "concurrency")
def test_what_the_socket_does_not_take_at_once(start: Start, way: str) -> None:
    """Several at the same time, each in pieces, none with the bytes of another."""
    server = start("-s", way)
    whole = noise(bigger_than_socket_buffers())
    slow = [server.connect(receive_buffer=65536) for _ in range(3)]
    for number, c in enumerate(slow):
        c.send(request("/big.bin", f"Range: bytes={number * 1000}-"))
        c.read_head()
    assert server.serves()
    pieces: list[bytes] = [b"", b"", b""]
    for number in range(3):
        pieces[number] += slow[number].read_exactly(200_001 + number)
    for number in (2, 0, 1):
        left = len(whole) - number * 1000 - len(pieces[number])
        pieces[number] += slow[number].read_exactly(left)
        assert pieces[number] == whole[number * 1000 :]


@contract("file-changes", "survives", "leaks")
@pytest.mark.parametrize("left", [0, 4097, 100_000])
def test_a_file_that_shrinks(start: Start, own_site: Site, way: str, left: int) -> None:
    """A mapping must neither kill the server nor send the zeros of its last page. In the packets of
    sendfile() and splice() the zeros may be: see below.
    """
    size = bigger_than_socket_buffers()
    own_site.write("file.bin", b"x" * size)
    server = start("-s", way, root=own_site.root)
    c = server.connect(receive_buffer=65536)
    c.send(request("/file.bin"))
    c.read_head()
    # A read() that is under way may find the pages cut and still the old size: it gives zeros.
    assert server.rests()
    os.truncate(own_site.root / "file.bin", left)
    received = c.read_all()
    assert len(received) < size
    if way.split("+")[1] in IN_MEMORY:
        assert b"\0" not in received
    assert server.serves()


@contract("mechanism")
def test_what_is_in_flight_is_the_file_itself(start: Start, own_site: Site, way: str) -> None:
    """sendfile() and splice() queue the pages of the file, not their bytes: who changes the file
    changes what has been sent. That nothing was copied cannot be shown more plainly.
    """
    size = 20_000
    path = own_site.write("file.bin", b"x" * size)
    server = start("-s", way, root=own_site.root)
    with server.connect() as c:
        c.send(request("/file.bin"))
        assert wait_until(lambda: unread(c.socket) > size, server.patience.limit)
        with path.open("r+b") as file:
            file.write(b"y" * size)
        body = c.read_reply().body
    assert set(body) == ({ord("x")} if way.split("+")[1] in IN_MEMORY else {ord("y")})


def unread(connection: socket.socket) -> int:
    """Bytes that have come and were not read."""
    count = fcntl.ioctl(connection, termios.FIONREAD, struct.pack("i", 0))
    return int(struct.unpack("i", count)[0])


def data_packets(connection: socket.socket) -> int:
    """How many packets with data have come, as the kernel has counted them (tcp(7), TCP_INFO)."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    if len(info) < TCPI_DATA_SEGS_IN + 4:
        pytest.skip("this kernel does not count the packets of a connection (Linux 4.6)")
    (count,) = struct.unpack_from("=I", info, TCPI_DATA_SEGS_IN)
    return int(count)


@contract("mechanism")
def test_head_and_body_share_a_packet(start: Start, way: str) -> None:
    """But where they are sent one after the other without a remark. The least of several replies
    counts: TCP may send a packet twice when an acknowledgement is late.
    """
    server = start("-s", way)
    packets = []
    with server.connect() as c:
        for _ in range(5):
            before = data_packets(c.socket)
            c.send(request("/hello.txt"))
            assert c.read_reply().body == HELLO
            packets.append(data_packets(c.socket) - before)
    assert min(packets) == (2 if way.split("+")[0] in ("two", "nodelay") else 1)


def calls_for_the_client(calls: list[tuple[int, str, str]]) -> list[str]:
    """From its accept() to the third close(): two files and the connection. Else nothing yet."""
    names = [call for _, call, result in calls if not call.startswith("accept") or result.isdigit()]
    if "accept4" not in names:
        return []
    names = names[names.index("accept4") + 1 :]
    return names if names.count("close") >= 3 else []


@contract("mechanism")
def test_the_calls_of_a_way(start: Start, tmp_path: Path, way: str) -> None:
    trace = Trace(tmp_path / "trace", ",".join(TRACED))
    server = start("-s", way, wrapper=trace.wrapper(), env=ENV)
    with server.connect() as c:
        c.send(request("/medium.bin") + request("/hello.txt"))
        assert len(c.read_reply().body) == 300_007
        assert c.read_reply().body == HELLO
    assert trace.has(lambda calls: bool(calls_for_the_client(calls)), server.patience.limit)
    used = set(calls_for_the_client(trace.calls())) - {"accept4", "close"}
    head, body = way.split("+")
    expected = HEAD_CALLS[head] | BODY_CALLS[body]
    if body != "mmap":
        used -= {"mmap", "munmap"}  # they may be malloc()'s
    if head == "writev":  # the whole of a small file, the first piece of a large one
        assert used - {"sendto"} == expected - {"sendto"}
    else:
        assert used == expected
