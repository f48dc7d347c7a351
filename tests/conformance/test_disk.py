"""Servers that do not wait for the disk, on a disk that is slow, and on one that never answers: the
museum disk (benchmarks/disk), mounted below the docroot of the server.
"""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import proc, tracing
from tests.conformance.matrix import contract, kind
from tests.conformance.museum import Museum
from tests.conformance.process import Server, Target, wait_until
from tests.conformance.programs import Start, Traced
from tests.conformance.site import HELLO, Site, noise
from tests.conformance.wire import LAST, request

WAITING_FOR_DISKS = ("12-aio", "13-uring", "15-slashdot")
pytestmark = [kind("model"), pytest.mark.servers(*WAITING_FOR_DISKS)]
AIO = ("12-aio",)
#: each way in which a server lets somebody else wait for bytes
BACKENDS = {"12-aio": ("threads", "posix", "linux", "threads-sendfile", "readahead")}
SIZE = 102400
NEVER = ("--seek", "900000,900000,900000")  # ms: nobody waits for that
SLOW = ("--seek", "250,250,250", "--rpm", "100000")


class Disks:
    """Those below own_site, and the servers on them."""

    def __init__(self, start: Start, site: Site) -> None:
        self._start, self._site = start, site
        self._disks: list[Museum] = []
        self._servers: list[Server] = []

    def mount(self, name: str, *args: str) -> Museum:
        folder = self._site.root / name
        folder.mkdir(mode=0o755)
        self._disks.append(Museum(folder, *args))
        return self._disks[-1]

    def server(self, *options: str, **more: Any) -> Server:
        self._servers.append(self._start(*options, **{"root": self._site.root, **more}))
        return self._servers[-1]

    def end(self) -> None:
        """Before the servers are judged: what still waits for a disk then hears that it has failed.
        A server that keeps files would have those of a disk that is gone for seconds.
        """
        for disk in self._disks:
            disk.end()
        for server in self._servers:
            if server.target.model.keeps_files and server.alive():
                for c in server.connections:
                    c.close()
                server.begins_anew()


@pytest.fixture
def disks(start: Start, own_site: Site) -> Iterator[Disks]:
    found = Disks(start, own_site)
    try:
        yield found
    finally:
        found.end()


def ways(target: Target) -> list[tuple[str, ...]]:
    """The options for each."""
    found = [("-d", name) for name in BACKENDS.get(target.name, ())]
    return [way for way in found if target.variant != "tsan" or way[1] != "posix"] or [()]


def path(disk: str, number: int) -> str:
    return f"/{disk}/files/{number % 256:03}/{number:06}"


@contract("disk-wait", "idle-time-out")
def test_who_waits_for_the_disk_is_not_overdue(target: Target, own_site: Site, disks: Disks) -> None:
    """Longer than a client may take, and in each of the places where it can: names, bytes."""
    each, limit = 6, 1
    rows = ways(target)
    spindles = ("-s", str(2 * len(rows)))
    disks.mount("cold", *SLOW, *spindles, "--metadata", "cold", f"files={each * len(rows)}x{SIZE}")
    clients = []
    for row, way in enumerate(rows):
        server = disks.server("-t", str(limit), *way)
        for c, number in zip(server.crowd(each), range(row * each, (row + 1) * each), strict=True):
            c.send(request(path("cold", number), "Connection: close"))
            clients.append((way, c))
    began = time.monotonic()
    for way, c in clients:
        reply = c.read_reply()
        assert (reply.status, len(reply.body)) == (200, SIZE), way
    assert time.monotonic() - began > limit, "nobody has waited for long"


@contract("bystander", "concurrency")
def test_who_does_not_wait_for_the_disk_is_not_held_up(target: Target, own_site: Site, disks: Disks) -> None:
    """More wait, for names and for bytes, than there are threads, workers, lines or buffers."""
    many = 200
    disks.mount("names", *NEVER, "--metadata", "cold", f"files=1000x{SIZE}")
    disks.mount("bytes", *NEVER, f"files=1000x{SIZE}")
    own_site.write("page.html", noise(300_007))
    for way in ways(target):
        server = disks.server(*way, backlog=2 * many)
        assert server.get("/none").status == 404  # now the kernel knows that there is none
        waiting = server.crowd(2 * many)
        for number, c in enumerate(waiting):
            c.send(request(path("names" if number % 2 else "bytes", number + 100)))
        assert waiting[-1].hears_nothing(server.patience.silence)
        for _ in range(3):
            assert server.get("/page.html").body == noise(300_007), way
            assert server.get("/hello.txt").body == HELLO, way
            assert server.get("/hello.txt", method="HEAD").status == 200, way
            assert server.get("/none").status == 404, way
        for c in waiting:
            assert c.hears_nothing(0) or "threads-sendfile" in way, (way, c.read_head())
            c.close()


@contract("bystander", "disk-wait", "500", "leaks")
def test_a_disk_that_never_answers(target: Target, own_site: Site, disks: Disks) -> None:
    """Bytes that never come, and a disk whose program is stopped although names are in memory: 503
    after some steps of -t; meanwhile others are served, and afterwards all are.
    """
    disks.mount("bytes", *NEVER, f"files=100x{SIZE}")
    stopped = disks.mount("stopped", "--speed", "100", f"files=100x{SIZE}")
    for number in range(100):
        os.stat(own_site.root / path("stopped", number)[1:])
    rows = [*ways(target), *([("-m", "unix")] if target.name in AIO else [])]
    servers = [disks.server("-t", "1", *way) for way in rows]
    inside = disks.server("-t", "1", root=stopped.folder)  # has nothing but the disk
    assert inside.get("/files/000/000000").status == 200
    clients = []
    for server in servers:
        server.begins_anew()  # the helper has threads, too
    with paused(stopped.process.pid):
        for number, server in enumerate(servers, 1):
            names = path("bytes", number), path("stopped", number), path("stopped", number + 50)
            for name in names:
                c = server.connect()
                c.send(request(name, "Connection: close"))
                clients.append((server, name, c))
            assert server.serves()
        c = inside.connect()
        c.send(request("/files/099/000099", "Connection: close"))
        clients.append((inside, "inside", c))
        for server, name, c in clients:
            which = (server.launch.options, name)
            if "threads-sendfile" in server.launch.options and "bytes" in name:
                assert c.read_head().status == 200, which  # the thread has the socket
                assert len(c.read_all()) < SIZE, which
                continue
            assert c.read_reply().status == 503, which
            c.expect_end()
        assert all(server.serves() for server in servers)
    for number, server in enumerate(servers, 1):
        reply = server.get(path("stopped", number))
        assert (reply.status, len(reply.body)) == (200, SIZE), server.launch.options


@contract("disk-wait", "concurrency")
def test_what_a_disk_says_too_late_goes_to_no_other_client(own_site: Site, disks: Disks) -> None:
    """The client has been told 503 and has left. Its number, descriptor or slot, is another's."""
    disks.mount("late", "--seek", "5000,5000,5000", f"files=10x{SIZE}")
    server = disks.server("-t", "1")
    with server.connect() as c:
        c.send(request(path("late", 3), "Connection: close"))
        assert c.read_reply().status == 503
        c.expect_end()
    with server.connect() as other:
        for _ in range(50):
            assert other.ask().body == HELLO
            assert other.hears_nothing(0.1)


@contract("disk-wait", "survives")
def test_time_in_which_the_server_was_stopped_is_not_the_disk_s(own_site: Site, disks: Disks) -> None:
    """The disk has answered meanwhile; but the server sees the client's next request first."""
    disks.mount("cold", *SLOW, f"files=10x{SIZE}")
    server = disks.server("-t", "1")
    with server.connect() as c, contextlib.ExitStack() as stopped:
        c.send(request(path("cold", 3)))
        for pid in (server.pid, *server.children()):
            stopped.enter_context(paused(pid))
        time.sleep(2.5)  # more than twice -t
        c.send(request(path("cold", 5)))
        stopped.close()
        assert c.read_reply().status == 200


@contract("disk-wait", "500", "leaks", servers=("13-uring",))
def test_a_ring_waits_for_so_many_files_at_a_time(disks: Disks) -> None:
    """When so many have had no answer, a client that needs a disk gets 503 at once, until the dead disks are gone."""
    many = f"files=200x{SIZE}"
    dead = disks.mount("names", *NEVER, "--metadata", "cold", many), disks.mount("bytes", *NEVER, many)
    disks.mount("other", "--speed", "100", f"files=10x{SIZE}")
    server = disks.server("-t", "1")
    waiting = server.crowd(130)  # LOST_MOST is 128; of 64 names and of 128 files there is room for one more
    for number, c in enumerate(waiting):
        c.send(request(path("names" if number < 60 else "bytes", number + 60), "Connection: close"))
    for c in waiting:
        assert c.read_reply().status == 503
    assert server.get(path("other", 3)).status == 503
    assert server.serves()
    for disk in dead:
        disk.end()
    assert wait_until(lambda: server.get(path("other", 3)).status == 200, server.patience.limit)


@contextlib.contextmanager
def paused(pid: int) -> Iterator[None]:
    proc.stop(pid)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contract("bystander", servers=("15-slashdot",))
def test_pages_that_leave_memory_while_they_are_sent(own_site: Site, disks: Disks) -> None:
    """What a thread has read is not believed to be in memory for ever."""
    disk = disks.mount("kept", "--speed", "100", "--keep", "files=1x8M")
    server = disks.server("-t", "2")
    c = server.download(path("kept", 0), window=65536)
    c.read_exactly(100_000)
    time.sleep(1.2)  # FRESH_MS
    fd = os.open(own_site.root / path("kept", 0)[1:], os.O_RDONLY)  # waits for the disk
    with paused(disk.process.pid), c:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
        while not c.hears_nothing(server.patience.silence):
            c.read_exactly(1)
        assert server.serves()


@contract("bystander", "mechanism", servers=("12-aio", "15-slashdot"))
def test_the_loop_opens_what_is_in_memory_and_nothing_else(traced: Traced) -> None:
    """With RESOLVE_CACHED the kernel does not ask the disk for a name: it fails, and a thread opens the file."""
    server, trace = traced("openat2")
    for _ in range(3):
        assert server.serves()
    (loop,) = server.serving()
    assert trace.has(lambda calls: any(pid == loop for pid, *_ in calls), server.patience.limit)
    own = [call for call in tracing.parsed(trace.completed()) if call.pid == loop]
    assert all(re.search(r"RESOLVE_CACHED|0x20\b", call.arguments) for call in own), own


# ---- who does the waiting, and fails


@contract("survives", "bystander", servers=AIO)
@pytest.mark.parametrize("who", ["unix", "tcp"])
def test_a_helper_that_stops_answering(start: Start, who: str) -> None:
    """Who has asked it is told 503. Then no line is left, and threads serve who waits for one, and all others."""
    server = start("-m", who, "-t", "1")
    assert server.serves()
    server.begins_anew()  # the helper has threads, too
    (helper,) = server.children()
    with paused(helper):
        clients = server.crowd(30, LAST)  # more than lines
        replies = [c.read_reply().status for c in clients]
        assert replies.count(503) >= 20 and set(replies) <= {200, 503}
        assert server.serves()
        assert "the helper is gone" in server.stderr()
    assert server.serves()


@contract("survives", servers=AIO)
def test_a_helper_whose_threads_end(start: Start, tmp_path: Path) -> None:
    """Each hears of one question more, and then recv() fails."""
    if (reason := tracing.unavailable()) is not None:
        pytest.skip(reason)
    server = start("-m", "unix")
    assert server.serves()
    server.begins_anew()
    (helper,) = server.children()
    inject = "inject=recvfrom:error=ENOMEM:when=2"
    command = ["strace", "-qq", "-f", "-e", "trace=recvfrom", "-e", inject, "-p", str(helper)]
    with subprocess.Popen([*command, "-o", str(tmp_path / "trace")]) as strace:
        assert wait_until(lambda: traced_wholly(helper), server.patience.limit)
        for _ in range(5):  # one after the other: not all of its threads end, nor does it
            assert server.serves()
        strace.terminate()


def traced_wholly(pid: int) -> bool:
    """All its threads, of which it has one for each line, and one more."""
    threads = [proc.text(pid, f"task/{tid}/status") for tid in os.listdir(f"/proc/{pid}/task")]
    return len(threads) > 20 and not any("TracerPid:\t0\n" in text for text in threads)


@contract("survives", "disk-wait", servers=AIO)
def test_reads_that_are_refused_or_never_told_of(target: Target, start: Start, traced: Traced) -> None:
    """By aio_read() and its call back, and by io_submit()."""
    if target.variant not in ("glibc", "asan"):
        pytest.skip("preload.c gets into programs that are linked dynamically")
    for aio, status in (("refuse", 503), ("silent", 200)):
        env = tracing.preload(target, NOT_CACHED="1", AIO=aio)
        server = start("-d", "posix", "-t", "1", env=env)
        assert server.get("/hello.txt").status == status, aio
    for error, status in (("EAGAIN", 503), ("EIO", 500)):
        inject = ["preadv2:error=EAGAIN", f"io_submit:error={error}"]
        server, _ = traced("preadv2,io_submit", "-d", "linux", inject=inject)
        assert server.get("/hello.txt").status == status, error
