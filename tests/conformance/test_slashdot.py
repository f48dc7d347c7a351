"""15-slashdot: what it keeps and for how long, and what it does when it is full. How its workers
come and go: test_restarts.py.
"""

import itertools
import os
import re
import resource
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.conformance import proc
from tests.conformance.matrix import contract, kind
from tests.conformance.process import Server, limited, wait_until
from tests.conformance.programs import Start, Traced
from tests.conformance.site import HELLO, Site, bigger_than_socket_buffers, noise
from tests.conformance.wire import LAST, Connection, request

FRESH = 1.0  #: seconds for which a file is believed
YOUNG = 2.0  #: seconds for which a changed file is not kept at all
UNUSED = 10.0  #: seconds for which a file is kept that nobody asks for

pytestmark = [kind("model"), pytest.mark.servers("15-slashdot")]


@pytest.fixture(scope="session")
def aging(top: Path) -> list[tuple[float, Site]]:
    """Sites that wait until they are old (their ctime cannot be set): all at the same time."""
    sites = []
    for _ in range(40):
        sites.append((time.monotonic(), Site(Path(tempfile.mkdtemp(dir=top)))))
        sites[-1][1].write("large.bin", noise(300_007))
    return sites


@pytest.fixture
def old_site(aging: list[tuple[float, Site]]) -> Site:
    """Files that have been there for long enough to be kept."""
    made, site = aging.pop()
    time.sleep(max(0, made + YOUNG + 1.1 - time.monotonic()))
    return site


def out_of_descriptors(server: Server) -> AbstractContextManager[None]:
    return limited(server, "nofile", max(proc.descriptors(server.serving()[0])) + 1)


@contract("mechanism")
def test_a_kept_file_costs_two_calls(traced: Traced, old_site: Site) -> None:
    """recv() and send(), and the wait; no open, no stat, no close, nothing for the epoll."""
    calls = "network,openat2,openat,newfstatat,fstat,statx,close,preadv2,sendfile,epoll_ctl,fcntl"
    server, trace = traced(f"{calls},epoll_wait", root=old_site.root)
    began = time.monotonic()
    with server.connect() as c:
        for _ in range(10):
            assert c.ask().body == HELLO
    took = time.monotonic() - began
    assert trace.has(lambda _: trace.count("sendto") == 10, server.patience.limit)
    names = trace.names()
    sent = [i for i, name in enumerate(names) if name == "sendto"]
    turns = [names[one + 1 : following] for one, following in itertools.pairwise(sent)]
    # not all, if it takes seconds: in each of them it wakes once more, and looks at the file again
    assert turns.count(["epoll_wait", "recvfrom"]) >= 5, turns
    opened = [line for line in trace.lines() if '"hello.txt"' in line]
    assert len(opened) <= 2 + took / FRESH


@contract("mechanism", "close")
def test_a_reply_that_is_the_last_shares_its_segment_with_the_fin(traced: Traced, old_site: Site) -> None:
    """MSG_MORE, and then shutdown(); and who has ended by then was never registered."""
    server, trace = traced("accept4,sendto,epoll_ctl,close,shutdown", root=old_site.root)
    assert trace.has(lambda _: trace.count("epoll_ctl") == 3, server.patience.limit)
    for _ in range(3):
        assert server.get("/hello.txt").body == HELLO
    assert server.settles()
    assert trace.has(lambda _: trace.count("sendto") == 3, server.patience.limit)
    assert all("MSG_MORE" in line for line in trace.completed() if "sendto(" in line)
    assert trace.count("shutdown") == 3
    assert trace.count("epoll_ctl") <= 3 + 3  # signals, disk, guests; and slow clients


@contract("mechanism")
def test_a_silent_client_is_not_accepted_at_once(traced: Traced) -> None:
    """No socket listens without TCP_DEFER_ACCEPT (tcp(7)): a worker hears of a client with his request."""
    server, trace = traced("setsockopt,listen", "-w", "2")
    assert server.serves()
    text = "\n".join(trace.completed())
    listening = set(re.findall(r" listen\((\d+),", text))
    assert listening == set(re.findall(r" setsockopt\((\d+), SOL_TCP, TCP_DEFER_ACCEPT, \[1\]", text))
    assert len(listening) == 2


@contract("file-changes", "content-length", "last-modified", "404")
@pytest.mark.long
def test_a_kept_file_that_changes_is_seen_within_a_second(start: Start, own_site: Site) -> None:
    """In memory or open; in place, with the same length and mtime, the ctime tells."""
    changes: dict[str, Callable[[Path], object]] = {
        "same": lambda _: None,
        "rewritten": lambda path: own_site.write(path.name, path.read_bytes()[::-1]),
        "replaced": lambda path: os.replace(own_site.write("new", b"a new one\n"), path),
        "vanished": lambda path: path.unlink(),
        "shrunk": lambda path: os.truncate(path, 5),
    }
    sizes = (1000, 300_007)
    paths = [own_site.write(f"{how}.{n}", noise(n)) for how in changes for n in sizes]
    server = start(root=own_site.root)
    time.sleep(YOUNG + 1.1)
    for path in paths:
        before = server.get(f"/{path.name}").body
        assert before == path.read_bytes()
        changes[path.stem](path)
        if path.stem == "shrunk":
            with server.connect() as c:  # all of the old one, or an early end
                c.send(request(f"/{path.name}", "Connection: close"))
                said, body = int(c.read_head().need("Content-Length")), c.read_all()
                assert before.startswith(body) and said >= len(body)
    time.sleep(FRESH + 0.1)
    for path in paths:
        reply = server.get(f"/{path.name}")
        if path.stem == "vanished":
            assert reply.status == 404
            assert not any(str(path) in what for what in proc.descriptors(server.serving()[0]).values())  # nor kept
        else:
            assert (reply.status, reply.body) == (200, path.read_bytes()), path.name


@contract("file-changes")
def test_a_file_is_young_by_the_time_at_which_it_was_seen(traced: Traced, own_site: Site) -> None:
    """The reading of it takes longer than it is young: that does not make it older."""
    slow = "preadv2:delay_exit=3100000:when=1"
    server, trace = traced("openat2,preadv2", inject=slow, root=own_site.root)
    own_site.write("new.txt", b"new\n")
    for _ in range(2):
        assert server.get("/new.txt").body == b"new\n"
    assert len([line for line in trace.completed() if '"new.txt"' in line]) == 2


@contract("leaks", "file-changes", "404")
@pytest.mark.long
def test_a_file_that_was_deleted_is_closed(start: Start, old_site: Site) -> None:
    """Nobody asks for it any more, or for anything: the disk gets its space back all the same."""
    server = start(root=old_site.root)
    (pid,) = server.serving()
    held = old_site.root / "large.bin"
    assert len(server.get("/large.bin").body) == held.stat().st_size

    def is_held() -> bool:
        return any(str(held) in what for what in proc.descriptors(pid).values())

    assert is_held()
    held.unlink()
    assert wait_until(lambda: not is_held(), UNUSED + server.patience.limit)
    assert server.get("/large.bin").status == 404


@contract("leaks", "memory")
def test_the_table_is_bounded(start: Start, old_site: Site) -> None:
    """More large files than it keeps where descriptors are few: the oldest are closed."""
    for i in range(100):
        old_site.sparse(f"large-{i}.bin", 20_000)
    time.sleep(YOUNG + 1.1)
    server = start(root=old_site.root, wrapper=["/usr/bin/prlimit", "--nofile=100"])
    (pid,) = server.serving()
    base = len(proc.descriptors(pid))
    with server.connect() as c:
        for i in range(100):
            assert c.ask(request(f"/large-{i}.bin", "Range: bytes=0-0")).status == 206
    assert 20 <= len(proc.descriptors(pid)) - base <= 26


@contract("leaks", "any-length")
def test_a_small_file_that_is_on_the_disk_is_read_by_a_thread(traced: Traced, old_site: Site) -> None:
    """What the loop has opened for nothing is closed again."""
    server, _ = traced("preadv2", inject="preadv2:error=EAGAIN", root=old_site.root)
    for _ in range(3):
        assert server.get("/hello.txt").body == HELLO
    (pid,) = server.serving()
    held = [what for what in proc.descriptors(pid).values() if what.endswith("/hello.txt")]
    assert len(held) <= 1


@contract("mechanism", "any-length")
def test_what_is_on_the_disk_is_read_by_a_thread(traced: Traced, old_site: Site) -> None:
    """The loop sees that a page is not in memory, and does not touch it before it is."""
    content = noise(3_000_007)
    fd = os.open(old_site.write("cold.bin", content), os.O_RDONLY)
    os.fsync(fd)
    server, trace = traced("preadv2,pread64,sendfile,readahead", root=old_site.root)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    assert server.get("/cold.bin").body == content
    (pid,) = server.serving()
    assert trace.has(lambda _: trace.count("sendfile") > 0, server.patience.limit)
    calls = trace.calls()
    if all(result != "EAGAIN" for _, name, result in calls if name == "preadv2"):
        pytest.skip("this file system keeps in memory what it was told to forget")
    threads = {p for p, name, _ in calls if name == "pread64"}
    assert threads and pid not in threads
    assert {p for p, name, _ in calls if name == "sendfile"} == {pid}
    time.sleep(FRESH + 0.1)
    assert server.get("/cold.bin").body == content  # now it is there: to its last page
    last = f", {len(content) - 1}, RWF_NOWAIT"
    assert trace.has(lambda _: any(last in line for line in trace.lines()), server.patience.limit)


@contract("file-changes", "survives")
def test_a_disk_that_fails_in_a_thread_ends_the_reply(traced: Traced, own_site: Site) -> None:
    """Or becomes one, as long as nothing of it is out."""
    path = own_site.write("cold.bin", noise(2_000_003))
    for when, status in (("1", 500), ("40", 200)):
        inject = ("preadv2:error=EAGAIN", f"pread64:error=EIO:when={when}+")
        one = ("-r", "1")  # strace counts the calls of each thread
        server, _ = traced("preadv2,pread64", *one, inject=inject, path=path, root=own_site.root)
        with server.connect() as c:
            c.send(request("/cold.bin", "Connection: close"))
            assert c.read_head().status == status
            assert len(c.read_all()) < 2_000_003


@contract("half-close", "pipelining")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_the_end_of_a_client_is_not_forgotten(start: Start, old_site: Site, method: str) -> None:
    """It is told once, while more requests wait than a turn has: the connection remembers it."""
    server = start(root=old_site.root)
    for _ in range(10):
        with server.connect() as c:
            c.send(request("/hello.txt", method=method) * 600)
            c.finish_sending()
            for _ in range(600):
                assert c.read_reply().status in (200, 405)
            c.expect_end()


def reading(server: Server) -> Connection:
    """A client that has taken a megabyte of its reply, and so has earned its place."""
    client = server.download()
    client.read_exactly(2 << 20)
    return client


@contract("survives", "concurrency")
def test_who_leaves_for_a_guest(start: Start) -> None:
    """The one who has been idle for the longest, or sends slowly; nobody who reads the reply."""
    server = start("-c", "3")
    clients = server.crowd(3)
    for c in clients:
        assert c.ask().body == HELLO
        time.sleep(0.01)  # age is counted in milliseconds
    assert clients[0].ask().body == HELLO  # now the second is the oldest
    guest = server.connect()
    assert guest.ask().body == HELLO
    clients[1].expect_end()
    for c in (clients[0], clients[2], guest):
        assert c.ask().body == HELLO

    server = start("-c", "2")
    slow = server.crowd(2, LAST[:-1])
    (pid,) = server.serving()
    assert wait_until(lambda: len(proc.sockets(pid)) == 3, server.patience.limit)
    assert server.serves()
    slow[0].expect_gone()
    assert slow[1].ask(LAST[-1:]).body == HELLO

    server = start("-c", "2")
    busy = [reading(server) for _ in range(2)]
    with server.connect() as guest:
        reply = guest.ask(LAST)
        assert (reply.status, reply.need("Retry-After")) == (503, "1")
        guest.expect_end()
    busy[0].close()
    assert wait_until(server.serves, server.patience.limit)


@contract("concurrency")
def test_fewer_clients_than_workers(start: Start) -> None:
    """-c 1 allows one client, and there are two workers: each of them must be able to serve one."""
    server = start("-w", "2", "-c", "1")
    for _ in range(8):
        assert server.serves()
        assert server.settles()


@contract("emfile", "survives", "concurrency")
def test_a_guest_when_descriptors_are_out(start: Start) -> None:
    """An idle client leaves. Where nobody can, the reserve: the guest hears why."""
    server = start()
    idle = server.connect()
    assert idle.ask().body == HELLO
    with out_of_descriptors(server):
        assert server.ask(LAST).status in (200, 503)
        idle.expect_end()
    assert wait_until(server.serves, server.patience.limit)
    server = start()
    reading(server)
    with out_of_descriptors(server):
        for _ in range(3):
            with server.connect() as guest:
                assert guest.ask(LAST).status == 503
                guest.expect_end()
    assert wait_until(server.serves, server.patience.limit)


@contract("emfile", "survives", "concurrency")
def test_the_reserve_comes_back(traced: Traced, own_site: Site) -> None:
    """It cannot be opened at once: if that were not tried again, the third would hear nothing."""
    own_site.sparse("big.bin", bigger_than_socket_buffers())
    time.sleep(YOUNG + 1.1)
    inject = "openat:error=EMFILE:when=2"
    server, trace = traced("openat", inject=inject, path=Path("/dev/null"), root=own_site.root)

    def status() -> int:
        c = server.connect(receive_buffer=4096)
        c.send(request("/big.bin"))
        return c.read_head().status

    reading(server)
    (pid,) = server.serving()
    used = max(proc.descriptors(pid)) + 1
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, used))
    assert [status() for _ in range(3)] == [503, 503, 503]
    assert trace.saw("EMFILE", server.patience.limit)


@contract("memory", "survives")
def test_a_crowd_that_has_left_leaves_its_memory(start: Start) -> None:
    """Not what it keeps of its first guests: a second crowd tells."""
    clients = 1200
    server = start(backlog=clients)
    if server.target.variant != "glibc":
        pytest.skip("how another library gives memory back is its own affair")
    (pid,) = server.serving()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < clients + 100:
        pytest.skip(f"the hard limit of descriptors is {hard}")

    def come_and_go() -> int:
        crowd = server.crowd(clients)
        for c in crowd:
            assert c.ask().body == HELLO
        most = proc.anonymous_kib(pid)
        for c in crowd:
            c.close()
        assert wait_until(lambda: len(proc.sockets(pid)) == 1, server.patience.limit)
        return most

    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, clients + 100), hard))
    try:
        come_and_go()
        before = proc.anonymous_kib(pid)
        most = come_and_go()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert most - before >= clients // 16, "64 bytes each"
    assert wait_until(lambda: proc.anonymous_kib(pid) - before < (most - before) / 4, server.patience.limit)
