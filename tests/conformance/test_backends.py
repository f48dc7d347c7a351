"""12-aio has many ways to wait for the disk, and all of them send the same bytes; nobody else
waits, whatever becomes of the disk, the file and the client meanwhile.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from conformance import proc
from conformance.contract import contract
from conformance.process import Server, Target, wait_until
from conformance.programs import Start
from conformance.servers import SANITIZED
from conformance.site import HELLO, SPARSE_END, SPARSE_SIZE, Site, bigger_than_socket_buffers, noise
from conformance.tracing import ENV, Trace, short_reads
from conformance.wire import request

#: Those that wait in the loop, and those that do not. What `posix` reads, threads of the C library
#: read, which a trace sees like the others.
WAITING = ("writev", "sendfile")
READING = ("posix", "threads", "nowait", "linux")
BACKENDS = (*WAITING, *READING, "threads-sendfile", "readahead")
BY_THREADS = ("posix", "threads", "nowait")
LOOKERS = ("0", "1", "4", "unix", "tcp")
DELAY = 0.3  #: seconds of a disk that is slow

pytestmark = pytest.mark.servers("12-aio")


@pytest.fixture(autouse=True)
def _known_threads(request: pytest.FixtureRequest, target: Target) -> None:
    parameters = getattr(request.node, "callspec", None)
    backend = parameters.params.get("backend") if parameters else None
    if target.variant == "tsan" and backend == "posix":
        pytest.skip("ThreadSanitizer does not survive threads that the C library starts by itself")


@contract("any-length", "range", "head", "keep-alive", "pipelining", "leaks")
@pytest.mark.parametrize("readers", ["1", "16"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_same_bytes(start: Start, backend: str, readers: str) -> None:
    server = start("-d", backend, "-r", readers)
    near_end = SPARSE_SIZE - len(SPARSE_END) - 5
    with server.connect() as c:
        c.send(
            request("/hello.txt")
            + request("/medium.bin")
            + request("/empty.txt")
            + request("/medium.bin", method="HEAD")
            + request("/medium.bin", "Range: bytes=65535-200000")
            + request("/no-such.txt")
            + request("/sparse.bin", f"Range: bytes={near_end}-")
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


@contract("concurrency", "any-length")
@pytest.mark.parametrize("readers", ["1", "3"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_more_clients_than_readers(start: Start, backend: str, readers: str) -> None:
    """The queue is full: who comes later is read for later."""
    server = start("-d", backend, "-r", readers)
    clients = [server.connect() for _ in range(40)]
    for c in clients:
        c.send(request("/medium.bin"))
    for c in clients:
        assert c.read_reply().body == noise(300_007)


@contract("any-length", "concurrency")
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_the_socket_does_not_take_at_once(start: Start, backend: str) -> None:
    server = start("-d", backend)
    whole = noise(bigger_than_socket_buffers())
    slow = [server.connect(receive_buffer=65536) for _ in range(3)]
    for number, c in enumerate(slow):
        c.send(request("/big.bin", f"Range: bytes={number * 1000}-"))
        c.read_head()
    assert server.serves()
    for number in (2, 0, 1):
        left = len(whole) - number * 1000
        assert slow[number].read_exactly(left) == whole[number * 1000 :]


@contract("memory", "concurrency")
def test_what_is_kept_for_those_who_do_not_read(start: Start) -> None:
    """64 KiB each, and what else a connection takes, and as much again for the holes that malloc()
    is left with; beside them the buffers that are at hand. (Whole pieces would be 256 KiB each.)
    """
    server = start()
    if server.target.variant in SANITIZED:
        pytest.skip("what is freed stays with the sanitizer")
    readers = 64
    before = proc.anonymous_kib(server.pid)
    clients = [server.connect() for _ in range(readers)]
    for c in clients:
        c.send(request("/big.bin"))
    for c in clients:
        assert c.read_head().status == 200
    most = before + readers * 2 * (64 + 8) + 16 * 256 + 1024
    assert wait_until(lambda: proc.anonymous_kib(server.pid) <= most, server.patience.limit)


@contract("concurrency", "pipelining", "mechanism")
def test_the_loop_looks_up_however_much_is_over(start: Start, tmp_path: Path) -> None:
    """Four who pipeline keep the threads busy, so that with each job that is handed over another
    is over. The loop takes those that were over when it began, and then waits for all again.
    """
    trace = Trace(tmp_path / "trace", "epoll_wait,epoll_pwait,sendto")
    server = start(wrapper=trace.wrapper(), env=ENV)
    clients = [server.connect() for _ in range(4)]
    for c in clients:
        c.send(request("/hello.txt") * 200)
    for c in clients:
        for _ in range(200):
            assert c.read_reply().body == HELLO
    sent = [name for _, name, _ in trace.calls()]
    turns = " ".join(sent).replace("epoll_pwait", "epoll_wait").split("epoll_wait")
    most = max(turn.count("sendto") for turn in turns)
    assert 0 < most <= len(clients) * 2 * 16  # head and body, of as many requests as one may have


@contract("get", "403", "404", "outside", "leaks")
@pytest.mark.parametrize("who", LOOKERS)
def test_whoever_looks_files_up(start: Start, who: str) -> None:
    server = start("-m", who)
    server.begins_anew()  # the helper has threads, too
    expected = {
        "/hello.txt": 200,
        "/no-such.txt": 404,
        "/../secret.txt": 403,
        "/%2e%2e/secret.txt": 403,
        "/link-outside.txt": 403,
        "/fifo": 403,
        "/sub": 301,
        "/sub/": 200,
    }
    clients = [(server.connect(), path) for path in list(expected) * 5]
    for c, path in clients:  # more questions than lines to the helper
        c.send(request(path))
    for c, path in clients:
        assert c.read_reply().status == expected[path], path


def helper_of(server: Server) -> int:
    (helper,) = server.children()
    return helper


@contract("survives", "concurrency")
@pytest.mark.parametrize("who", ["unix", "tcp"])
def test_a_helper_that_dies(start: Start, who: str) -> None:
    """With questions on all its lines, and more that wait; then the server looks for itself."""
    server = start("-m", who)
    assert server.serves()
    helper = helper_of(server)
    os.kill(helper, signal.SIGSTOP)
    clients = [server.connect() for _ in range(30)]
    for c in clients:
        c.send(request("/hello.txt"))
    time.sleep(server.patience.silence)
    os.kill(helper, signal.SIGKILL)
    for c in clients:
        assert c.read_reply().body == HELLO
    assert server.serves()
    assert wait_until(lambda: "the helper is gone" in server.stderr(), server.patience.limit)


@contract("stop")
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("who", ["unix", "tcp"])
def test_the_helper_ends_with_the_server(start: Start, who: str, signum: int) -> None:
    server = start("-m", who)
    assert server.serves()
    helper = helper_of(server)
    server.ends_with = 0 if signum == signal.SIGTERM else -signum
    server.signal(signum)
    server.wait()
    assert wait_until(lambda: not proc.alive(helper), server.patience.limit)


def slow_disk(tmp_path: Path, path: Path) -> Trace:
    """Every read of this file takes a while, seen by those who read: a disk that is busy."""
    calls = "pread64,preadv2,sendfile"
    delay = f"{calls}:delay_enter={int(DELAY * 1e6)}"
    return Trace(tmp_path / "trace", calls, inject=delay, path=path)


@contract("concurrency", "mechanism")
@pytest.mark.parametrize("backend", ["sendfile", *BY_THREADS, "threads-sendfile", "readahead"])
def test_nobody_waits_for_the_disk_of_another(
    start: Start, own_site: Site, tmp_path: Path, backend: str
) -> None:
    """Five readers of slow files take as long as one; with `sendfile`, which waits in the loop,
    they take five times as long, and so does everybody else: that is what the others are for.
    """
    path = own_site.write("slow.bin", noise(1000))
    own_site.write("hello.txt", HELLO)
    trace = slow_disk(tmp_path, path)
    server = start("-d", backend, root=own_site.root, wrapper=trace.wrapper(), env=ENV)
    assert server.serves()
    clients = [server.connect() for _ in range(5)]
    began = time.monotonic()
    for c in clients:
        c.send(request("/slow.bin"))
    assert wait_until(lambda: len(trace.lines()) > 0, server.patience.limit)
    assert server.serves()
    quick = time.monotonic() - began
    for c in clients:
        assert c.read_reply().body == noise(1000)
    slow = time.monotonic() - began
    if backend == "sendfile":
        assert slow > 4 * DELAY
    elif backend in ("threads", "threads-sendfile"):
        assert quick < slow < 4 * DELAY


@contract("survives", "leaks", "concurrency")
@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("backend", ["threads", "posix", "threads-sendfile", "readahead"])
def test_a_client_that_leaves_during_a_read(
    start: Start, own_site: Site, tmp_path: Path, backend: str, how: str
) -> None:
    path = own_site.write("slow.bin", noise(100_000))
    own_site.write("hello.txt", HELLO)
    trace = slow_disk(tmp_path, path)
    server = start("-d", backend, root=own_site.root, wrapper=trace.wrapper(), env=ENV)
    for _ in range(3):
        c = server.connect()
        c.send(request("/slow.bin"))
        time.sleep(DELAY / 3)
        c.reset() if how == "reset" else c.close()
        assert server.serves()
    assert server.settles()


@contract("file-changes", "survives", "leaks")
@pytest.mark.parametrize("left", [0, 4097, 100_000])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_file_that_shrinks(start: Start, own_site: Site, backend: str, left: int) -> None:
    size = bigger_than_socket_buffers()
    own_site.write("file.bin", b"x" * size)
    server = start("-d", backend, root=own_site.root)
    c = server.connect(receive_buffer=65536)
    c.send(request("/file.bin"))
    c.read_head()
    # A read() that is under way may find the pages cut and still the old size: it gives zeros.
    assert server.rests()
    os.truncate(own_site.root / "file.bin", left)
    received = c.read_all()
    assert len(received) < size
    if backend in (*READING, "writev"):
        assert b"\0" not in received
    assert server.serves()


@contract("file-changes", "survives")
@pytest.mark.parametrize("backend", ["threads", "posix", "nowait", "readahead"])
def test_a_disk_that_fails_before_the_head_is_out(
    start: Start, docroot: Site, tmp_path: Path, backend: str
) -> None:
    """Then the client can still be told."""
    calls = "pread64,preadv2,readahead"
    path = docroot.root / "medium.bin"
    trace = Trace(tmp_path / "trace", calls, inject=f"{calls}:error=EIO", path=path)
    server = start("-d", backend, "-v", wrapper=trace.wrapper(), env=ENV)
    assert server.get("/medium.bin").status == 500
    assert '12-aio: "" 500 ' in server.stderr()
    assert server.serves()


@contract("any-length")
@pytest.mark.parametrize("backend", ["threads", "nowait"])
def test_reads_that_bring_less_than_they_should(start: Start, target: Target, backend: str) -> None:
    server = start("-d", backend, env=short_reads(target))
    assert server.get("/medium.bin").body == noise(300_007)
    part = request("/medium.bin", "Range: bytes=9000-50000", "Connection: close")
    with server.connect() as c:
        c.send(part)
        assert c.read_reply().body == noise(300_007)[9000:50001]


@contract("mechanism")
def test_noatime(start: Start, tmp_path: Path) -> None:
    for options, asked in ((("-n",), True), ((), False)):
        trace = Trace(tmp_path / f"trace{asked}", "fcntl,close")
        server = start(*options, wrapper=trace.wrapper(), env=ENV)
        assert server.serves()
        assert trace.has(lambda calls: len(calls) > 3, server.patience.limit)
        assert server.settles()
        assert any("O_NOATIME" in line for line in trace.lines()) is asked


@contract("bad-usage")
@pytest.mark.parametrize(
    "wrong", [("-d", "no-such"), ("-d", ""), ("-r", "0"), ("-r", "x"), ("-m", "-1"), ("-m", "udp")]
)
def test_wrong_options(start: Start, wrong: tuple[str, str]) -> None:
    with pytest.raises(Exception, match=r"12-aio: -[drm] "):
        start(*wrong)
