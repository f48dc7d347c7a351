"""15-slashdot: what it keeps and for how long, what it does when it is full, and how its workers
come and go.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance import proc, tracing
from conformance.contract import contract
from conformance.process import STOP_GRACE, Server, Target, wait_until
from conformance.programs import Run, Start
from conformance.site import HELLO, Site, bigger_than_socket_buffers, noise
from conformance.wire import Connection, ContractBroken, request

FRESH = 1.0  #: seconds for which a file is believed
YOUNG = 2.0  #: seconds for which a changed file is not kept at all
UNUSED = 10.0  #: seconds for which a file is kept that nobody asks for
READY = 10.0  #: seconds for a new program to be ready
RETIRED_AT_MOST = 16  #: programs at a time, with their workers
ASK = request("/hello.txt", "Connection: close")
KEPT = request("/hello.txt")

pytestmark = pytest.mark.servers("15-slashdot")


@pytest.fixture
def old_site(own_site: Site) -> Site:
    """Files that have been there for long enough to be kept (their ctime cannot be set)."""
    own_site.write("large.bin", noise(300_007))
    time.sleep(YOUNG + 1.1)
    return own_site


@contextmanager
def descriptors(number: int) -> Iterator[None]:
    """For our own ends of so many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < number:
        pytest.skip(f"the hard limit of descriptors is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, number), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def counted(trace: tracing.Trace) -> list[str]:
    return [name for _, name, _ in trace.calls()]


# ---- the files it keeps


@contract("mechanism")
def test_a_kept_file_costs_two_calls(start: Start, old_site: Site, tmp_path: Path) -> None:
    """recv() and send(), and the wait; no open, no stat, no close, nothing for the epoll."""
    calls = "network,openat2,openat,newfstatat,fstat,statx,close,preadv2,sendfile,epoll_ctl,fcntl"
    trace = tracing.Trace(tmp_path / "trace", f"{calls},epoll_wait")
    server = start(root=old_site.root, wrapper=trace.wrapper(), env=tracing.ENV)
    with server.connect() as c:
        for _ in range(10):
            c.send(KEPT)
            assert c.read_reply().body == HELLO
    assert trace.has(lambda calls: [n for _, n, _ in calls].count("sendto") == 10, 10)
    names = counted(trace)
    ninth, tenth = [i for i, name in enumerate(names) if name == "sendto"][-2:]
    assert names[ninth + 1 : tenth + 1] == ["epoll_wait", "recvfrom", "sendto"]
    opened = [line for line in trace.lines() if '"hello.txt"' in line]
    assert len(opened) <= 2  # the second if all this took a second


@contract("mechanism", "close")
def test_a_reply_that_is_the_last_shares_its_segment_with_the_fin(
    start: Start, old_site: Site, tmp_path: Path
) -> None:
    """MSG_MORE, and then shutdown(): one segment says both. A connection that has ended when it is
    looked at again was never registered.
    """
    trace = tracing.Trace(tmp_path / "trace", "accept4,sendto,epoll_ctl,close,shutdown")
    server = start(root=old_site.root, wrapper=trace.wrapper(), env=tracing.ENV)
    assert trace.has(lambda calls: [n for _, n, _ in calls].count("epoll_ctl") == 3, 10)
    for _ in range(3):
        assert server.get("/hello.txt").body == HELLO
    assert server.settles()
    assert trace.has(lambda calls: [n for _, n, _ in calls].count("sendto") == 3, 10)
    assert all("MSG_MORE" in line for line in trace.completed() if "sendto(" in line)
    assert counted(trace).count("shutdown") == 3
    assert counted(trace).count("epoll_ctl") <= 3 + 3  # signals, disk, guests; and slow clients


@contract("file-changes", "last-modified")
def test_a_file_that_is_replaced_is_seen_within_a_second(start: Start, old_site: Site) -> None:
    server = start(root=old_site.root)
    assert server.get("/hello.txt").body == HELLO
    new = old_site.write("new.txt", b"a new one\n")
    os.replace(new, old_site.root / "hello.txt")
    time.sleep(FRESH + 0.1)
    assert server.get("/hello.txt").body == b"a new one\n"


@contract("file-changes", "content-length")
@pytest.mark.parametrize("name", ["hello.txt", "large.bin"])
def test_a_file_that_changes_in_place(start: Start, old_site: Site, name: str) -> None:
    """Of the same length, with the same mtime: the ctime tells."""
    server = start(root=old_site.root)
    before = server.get(f"/{name}").body
    after = bytes(reversed(before))
    old_site.write(name, after)
    time.sleep(FRESH + 0.1)
    assert server.get(f"/{name}").body == after


@contract("file-changes", "404")
def test_a_file_that_vanishes_is_gone_within_a_second(start: Start, old_site: Site) -> None:
    server = start(root=old_site.root)
    assert server.get("/hello.txt").body == HELLO
    (old_site.root / "hello.txt").unlink()
    time.sleep(FRESH + 0.1)
    assert server.get("/hello.txt").status == 404
    assert server.settles()


@contract("file-changes", "content-length")
@pytest.mark.parametrize("name", ["hello.txt", "large.bin"])
def test_a_file_that_shrinks_while_it_is_kept(start: Start, old_site: Site, name: str) -> None:
    """Within the second either all of the old one comes, or the connection ends early."""
    server = start(root=old_site.root)
    before = server.get(f"/{name}").body
    os.truncate(old_site.root / name, 5)
    with server.connect() as c:
        c.send(request(f"/{name}", "Connection: close"))
        head = c.read_head()
        body = c.read_all()
        assert before.startswith(body)
        assert int(head.need("Content-Length")) >= len(body)
    time.sleep(FRESH + 0.1)
    assert server.get(f"/{name}").body == before[:5]


@contract("file-changes")
def test_a_young_file_is_not_believed(start: Start, old_site: Site) -> None:
    """It may change again within the tick of the clock that writes its times."""
    server = start(root=old_site.root)
    for i in range(50):
        content = f"version {i:04}\n".encode()
        old_site.write("hello.txt", content)
        assert server.get("/hello.txt").body == content


@contract("file-changes")
def test_a_file_is_young_by_the_time_at_which_it_was_seen(
    start: Start, own_site: Site, tmp_path: Path
) -> None:
    """The reading of it takes longer than it is young: that does not make it older."""
    trace = tracing.Trace(
        tmp_path / "trace", "openat2,preadv2", inject="preadv2:delay_exit=3100000:when=1"
    )
    server = start(root=own_site.root, wrapper=trace.wrapper(), env=tracing.ENV)
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


@contract("leaks")
def test_a_file_of_many_names_is_kept_once(start: Start, old_site: Site) -> None:
    server = start(root=old_site.root)
    (pid,) = server.serving()
    for i in range(1, 30):
        for name in ("/" * i, "/." * i + "/", "/.//" * i):
            assert server.get(f"{name}large.bin", "Range: bytes=0-0").status == 206
    held = [what for what in proc.descriptors(pid).values() if what.endswith("/large.bin")]
    assert len(held) == 1


@contract("leaks", "memory")
def test_the_table_is_bounded(start: Start, own_site: Site) -> None:
    """More large files than it keeps: the oldest leave, and with them their descriptors."""
    for i in range(1100):
        own_site.sparse(f"large-{i}.bin", 20_000)
    time.sleep(YOUNG + 1.1)
    server = start(root=own_site.root)
    (pid,) = server.serving()
    base = len(proc.descriptors(pid))
    with server.connect() as c:
        for i in range(1100):
            c.send(request(f"/large-{i}.bin", "Range: bytes=0-0"))
            assert c.read_reply().status == 206
    kept = len(proc.descriptors(pid)) - base
    assert 1000 <= kept <= 1025, kept


@contract("mechanism", "any-length")
def test_what_is_on_the_disk_is_read_by_a_thread(
    start: Start, old_site: Site, tmp_path: Path
) -> None:
    """Pages that are not in memory: the loop sees it, and does not touch them before a thread has
    fetched them.
    """
    content = noise(3_000_007)
    path = old_site.write("cold.bin", content)
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    trace = tracing.Trace(tmp_path / "trace", "preadv2,pread64,sendfile,readahead")
    server = start(root=old_site.root, wrapper=trace.wrapper(), env=tracing.ENV)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    assert server.get("/cold.bin").body == content
    (pid,) = server.serving()
    assert trace.has(lambda calls: any(name == "sendfile" for _, name, _ in calls), 10)
    calls = trace.calls()
    if all(result != "EAGAIN" for _, name, result in calls if name == "preadv2"):
        pytest.skip("this file system keeps in memory what it was told to forget")
    threads = {p for p, name, _ in calls if name == "pread64"}
    assert threads and pid not in threads
    assert {p for p, name, _ in calls if name == "sendfile"} == {pid}


@contract("mechanism", "outside")
def test_a_kernel_without_openat2(start: Start, old_site: Site, tmp_path: Path) -> None:
    """Names are then looked up by the threads, one component after the other."""
    trace = tracing.Trace(tmp_path / "trace", "openat2", inject="openat2:error=ENOSYS")
    server = start(root=old_site.root, wrapper=trace.wrapper(), env=tracing.ENV)
    for _ in range(3):
        assert server.get("/hello.txt").body == HELLO
    assert server.get("/../secret.txt").status == 403


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


# ---- full


@contract("survives", "concurrency")
def test_the_oldest_idle_one_leaves_for_a_guest(start: Start) -> None:
    server = start("-c", "3")
    clients = [server.connect() for _ in range(3)]
    for c in clients:
        c.send(KEPT)
        assert c.read_reply().body == HELLO
        time.sleep(0.01)  # age is counted in milliseconds
    clients[0].send(KEPT)  # now the second is the oldest
    assert clients[0].read_reply().body == HELLO
    guest = server.connect()
    guest.send(KEPT)
    assert guest.read_reply().body == HELLO
    clients[1].expect_end()
    for c in (clients[0], clients[2], guest):
        c.send(KEPT)
        assert c.read_reply().body == HELLO


@contract("survives", "concurrency")
def test_one_who_sends_slowly_leaves_for_a_guest(start: Start) -> None:
    server = start("-c", "2")
    slow = [server.connect() for _ in range(2)]
    for c in slow:
        c.send(ASK[:-1])
    (pid,) = server.serving()
    assert wait_until(lambda: len(proc.sockets(pid)) == 3, server.patience.limit)
    assert server.serves()
    slow[0].expect_gone()
    slow[1].send(ASK[-1:])
    assert slow[1].read_reply().body == HELLO


@contract("survives", "concurrency")
def test_a_guest_is_told_when_all_are_being_answered(start: Start) -> None:
    server = start("-c", "2")
    busy = [server.connect(receive_buffer=4096) for _ in range(2)]
    for c in busy:
        c.send(request("/big.bin"))
        assert c.read_head().status == 200
    with server.connect() as guest:
        guest.send(ASK)
        reply = guest.read_reply()
        assert (reply.status, reply.need("Retry-After")) == (503, "1")
        guest.expect_end()
    busy[0].close()
    assert wait_until(server.serves, server.patience.limit)


@contract("emfile", "survives", "concurrency")
def test_a_guest_is_told_when_descriptors_are_out(start: Start) -> None:
    """The reserve: nobody can leave, and yet the guest hears why."""
    server = start()
    busy = server.connect(receive_buffer=4096)
    busy.send(request("/big.bin"))
    assert busy.read_head().status == 200
    (pid,) = server.serving()
    used = max(proc.descriptors(pid)) + 1
    old = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, old[1]))
    for _ in range(3):
        with server.connect() as guest:
            guest.send(ASK)
            assert guest.read_reply().status == 503
            guest.expect_end()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, old)
    assert wait_until(server.serves, server.patience.limit)


@contract("emfile", "survives", "concurrency")
def test_the_reserve_comes_back(start: Start, own_site: Site, tmp_path: Path) -> None:
    """It cannot be opened again as soon as it was used. If it were not tried later, the next guest
    would have its descriptor, and the one after him would hear nothing.
    """
    own_site.sparse("big.bin", bigger_than_socket_buffers())
    time.sleep(YOUNG + 1.1)
    null = Path("/dev/null")
    trace = tracing.Trace(
        tmp_path / "trace", "openat", inject="openat:error=EMFILE:when=2", path=null
    )
    server = start(root=own_site.root, wrapper=trace.wrapper(), env=tracing.ENV)

    def status() -> int:
        c = server.connect(receive_buffer=4096)
        c.send(request("/big.bin"))
        return c.read_head().status

    assert status() == 200
    (pid,) = server.serving()
    used = max(proc.descriptors(pid)) + 1
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, used))
    assert [status() for _ in range(3)] == [503, 503, 503]
    assert trace.has(lambda calls: "EMFILE" in [result for _, _, result in calls], 10)


@contract("emfile", "survives", "concurrency")
def test_an_idle_one_leaves_when_descriptors_are_out(start: Start) -> None:
    server = start()
    idle = server.connect()
    idle.send(KEPT)
    assert idle.read_reply().body == HELLO
    (pid,) = server.serving()
    used = max(proc.descriptors(pid)) + 1
    old = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, old[1]))
    with server.connect() as guest:
        guest.send(ASK)
        assert guest.read_reply().status in (200, 503)
    idle.expect_end()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, old)
    assert wait_until(server.serves, server.patience.limit)


@contract("idle-time-out")
def test_a_silent_guest_is_timed_out_although_accepted_late(start: Start) -> None:
    """TCP_DEFER_ACCEPT keeps him in the kernel for a second or so; then -t counts."""
    server = start("-t", "1")
    began = time.monotonic()
    with server.connect(limit=8.0 * server.patience.factor) as silent:
        silent.expect_end()
    assert time.monotonic() - began > 1.0


@contract("memory", "survives")
@pytest.mark.parametrize("clients", [2400])
def test_a_crowd_that_has_left_leaves_its_memory(start: Start, clients: int) -> None:
    """Not what it keeps of its first guests: a second crowd tells."""
    server = start(backlog=clients)
    if server.target.variant != "glibc":
        pytest.skip("how another library gives memory back is its own affair")
    (pid,) = server.serving()

    def come_and_go() -> int:
        crowd = [server.connect() for _ in range(clients)]
        for c in crowd:
            c.send(KEPT)
            assert c.read_reply().body == HELLO
        most = proc.anonymous_kib(pid)
        for c in crowd:
            c.close()
        assert wait_until(lambda: len(proc.sockets(pid)) == 1, server.patience.limit)
        return most

    with descriptors(clients + 100):
        come_and_go()
        before = proc.anonymous_kib(pid)
        most = come_and_go()
    assert most - before >= clients // 16, "64 bytes each"
    assert wait_until(
        lambda: proc.anonymous_kib(pid) - before < (most - before) / 4, server.patience.limit
    )


# ---- workers


@contract("concurrency", "address")
@pytest.mark.parametrize("sockets", [(), ("-l", "1"), ("-l", "3")])
def test_all_workers_serve(start: Start, sockets: tuple[str, ...]) -> None:
    server = start("-w", "2", *sockets)
    assert len(server.children()) == 2
    before = {pid: proc.cpu_seconds(pid) for pid in server.children()}

    def both() -> bool:
        for _ in range(200):
            assert server.serves()
        return all(proc.cpu_seconds(pid) > before[pid] for pid in server.children())

    if sockets == ("-l", "1"):  # whoever waits gets it; one may get all
        assert server.serves()
    else:
        assert wait_until(both, server.patience.limit)


@contract("setup-failure")
@pytest.mark.parametrize("first", [("-l", "1"), ("-w", "2")])
def test_the_port_is_not_shared_with_another_server(
    start: Start, run: Run, first: tuple[str, ...]
) -> None:
    """SO_REUSEPORT would let any server of the same user have a part of the guests."""
    server = start(*first)
    port = str(server.address[1])
    for more in (("-w", "1"), ("-w", "2"), ("-l", "1")):
        done = run(server.target.binary, "-p", port, *more, ".")
        assert (done.returncode, done.stdout) == (1, "")
        assert re.fullmatch(r"15-slashdot: bind .*: Address already in use\n", done.stderr)


@contract("bad-usage")
@pytest.mark.parametrize("option", ["-c", "-l", "-r"])
@pytest.mark.parametrize("value", ["0", "x", "-1", ""])
def test_numbers_that_are_none(
    start: Start, server: Server, run: Run, option: str, value: str
) -> None:
    done = run(server.target.binary, option, value, ".")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


@contract("survives")
def test_a_worker_that_dies_is_replaced(server: Server) -> None:
    (pid,) = server.children()
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: server.children() not in ([], [pid]), server.patience.limit)
    assert server.serves()
    server._await_workers()
    server.begins_anew()


@contract("stop")
def test_workers_end_with_their_master(server: Server) -> None:
    workers = server.children()
    server.signal(signal.SIGKILL)
    server.ends_with = -signal.SIGKILL
    server.wait()
    assert wait_until(lambda: not any(map(proc.alive, workers)), server.patience.limit)


def restarted(server: Server, before: list[int]) -> bool:
    """True once there are as many other workers, ready to serve."""
    new = [pid for pid in server.children() if pid not in before]
    wanted = server.target.model.threads_of_worker
    ready = [pid for pid in new if proc.threads(pid) > wanted]
    return len(ready) >= server.base.children


def restart(server: Server) -> None:
    before = server.children()
    server.signal(signal.SIGHUP)
    assert wait_until(lambda: restarted(server, before), server.patience.limit)


def downloads(server: Server, number: int) -> list[Connection]:
    """Of a file that does not fit into the buffers, each at the end of its head."""
    found = [server.connect(receive_buffer=65536) for _ in range(number)]
    for c in found:
        c.send(request("/big.bin", "Connection: close"))
        assert c.read_head().status == 200
    return found


@contract("stop-in-flight", "stop")
@pytest.mark.parametrize("workers", ["16", "64"])
def test_downloads_are_finished_while_other_workers_end(
    start: Start, docroot: Site, workers: str
) -> None:
    """The idle ones at once, the others one by one: that the master hears of each is no time gone
    by.
    """
    server = start("-w", workers)
    content = (docroot.root / "big.bin").read_bytes()
    busy = downloads(server, 16)
    server.signal(signal.SIGTERM)
    for c in busy:
        assert c.read_exactly(len(content)) == content
        c.expect_end()
    assert server.wait() == 0


@contract("survives")
def test_workers_that_die_do_not_hold_each_other_up(start: Start) -> None:
    """One after the other: the first is replaced while others die."""
    server = start("-w", "64")
    before, killed = server.children(), 0
    while not set(server.children()) - set(before):
        assert killed < len(before) - 1, "nobody was replaced"
        os.kill(before[killed], signal.SIGKILL)
        killed += 1
        time.sleep(0.1)
    assert wait_until(lambda: len(server.children()) == len(before), server.patience.limit)
    server._await_workers()
    server.begins_anew()


@contract("stop-in-flight", "keep-alive")
@pytest.mark.parametrize("workers", ["1", "16", "64"])
def test_a_restart_ends_no_connection(start: Start, docroot: Site, workers: str) -> None:
    """SIGHUP: a download goes on, a kept connection is answered until a reply says that it is the
    last, and the old workers are gone when both are.
    """
    server = start("-t", "60", "-w", workers)
    content = (docroot.root / "big.bin").read_bytes()
    kept = server.connect()
    kept.send(KEPT)
    assert kept.read_reply().keeps_alive
    (download,) = downloads(server, 1)
    old = set(server.children())
    restart(server)
    assert wait_until(lambda: len(old & set(server.children())) <= 2, server.patience.limit)
    assert server.serves()

    def is_told() -> bool:  # the new workers were ready before the old ones heard of anything
        kept.send(KEPT)
        reply = kept.read_reply()
        assert reply.body == HELLO
        return not reply.keeps_alive

    assert wait_until(is_told, server.patience.limit)
    kept.expect_end()
    assert download.read_exactly(len(content)) == content
    download.expect_end()
    assert wait_until(lambda: not old & set(server.children()), server.patience.limit)
    assert server.line  # said once: finish() looks at the rest of stdout


@contract("stop-in-flight", "survives")
@pytest.mark.long
@pytest.mark.parametrize("workers", ["2", "16"])
def test_restarts_under_load_lose_nobody(start: Start, workers: str) -> None:
    server = start("-w", workers, backlog=4096)
    done = threading.Event()
    served, lost = [0], []

    def ask() -> None:
        while not done.is_set():
            try:
                assert server.get("/hello.txt").body == HELLO
                served[0] += 1
            except (ContractBroken, OSError) as error:
                lost.append(repr(error))

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        before = served[0]
        restart(server)
        assert wait_until(lambda b=before: served[0] > b + 20, server.patience.limit)  # type: ignore[misc]
    done.set()
    for thread in threads:
        thread.join()
    assert not lost, lost[:3]
    assert wait_until(lambda: len(server.children()) == int(workers), server.patience.limit)


@contract("stop")
@pytest.mark.parametrize("workers", ["16", "64"])
def test_stopping_after_a_restart(start: Start, docroot: Site, workers: str) -> None:
    """Those of before are told as well, though they are another program's; and what they send is
    finished.
    """
    server = start("-t", "60", "-w", workers)
    content = (docroot.root / "big.bin").read_bytes()
    kept = server.connect()
    kept.send(KEPT)
    assert kept.read_reply().body == HELLO
    busy = downloads(server, 1)
    restart(server)
    busy += downloads(server, 1)
    server.signal(signal.SIGTERM)
    kept.expect_end()
    assert wait_until(lambda: len(server.children()) <= len(busy), server.patience.limit)
    for c in busy:
        assert c.read_exactly(len(content)) == content
    began = time.monotonic()
    assert server.wait() == 0
    assert time.monotonic() - began < STOP_GRACE / 2 * server.patience.factor


# ---- successors that fail


def lines_on_stderr(server: Server, number: int) -> list[str]:
    """What it has said, once it has said so much."""
    assert wait_until(lambda: server.stderr().count("\n") >= number, server.patience.limit)
    lines = server.stderr().splitlines()
    assert len(lines) == number, lines
    return lines


@contract("survives", "setup-failure")
def test_a_docroot_that_is_away_for_a_moment(start: Start, own_site: Site) -> None:
    """The old workers go on, even those that had the SIGHUP as well (pkill -HUP)."""
    server = start("-w", "16", root=own_site.root)
    before = sorted(server.children())
    away = own_site.top / "away"
    own_site.root.rename(away)
    for pid in proc.session(server.pid):
        os.kill(pid, signal.SIGHUP)
    (line,) = lines_on_stderr(server, 1)
    assert re.fullmatch(
        r"15-slashdot: restart: .* status 1, the old one goes on: .* No such file or directory",
        line,
    )
    for _ in range(64):
        assert server.serves()
    assert sorted(server.children()) == before
    away.rename(own_site.root)
    restart(server)
    assert server.serves()
    assert wait_until(lambda: not set(before) & set(server.children()), server.patience.limit)


#: how to start a program by another path, so that it can be replaced
BY_PATH = ["/bin/sh", "-c", 'shift; exec "$0" "$@"']


@contract("survives")
@pytest.mark.parametrize(
    ("script", "why"),
    [
        (None, r"status 1, .* execvp .*: No such file or directory"),
        ("echo two >&2\necho lines >&2\nexit 3\n", r"status 3, .*: two lines"),
        ("kill -KILL $$\n", r"signal 9, the old one goes on"),
    ],
    ids=["missing", "unwilling", "killed"],
)
def test_a_program_that_cannot_be_started_anew(
    start: Start, target: Target, tmp_path: Path, script: str | None, why: str
) -> None:
    path = tmp_path / target.binary.name
    shutil.copy(target.binary, path)
    server = start(wrapper=[*BY_PATH, str(path)])
    before = server.children()
    replace_program(path, script)
    server.signal(signal.SIGHUP)
    (line,) = lines_on_stderr(server, 1)
    assert re.fullmatch(rf"15-slashdot: restart: the new program .*{why}", line)
    assert server.children() == before
    assert server.serves()


def replace_program(path: Path, script: str | None) -> None:
    """Not written over: the old one runs."""
    path.unlink()
    if script is not None:
        path.write_text(f"#!/bin/sh\n{script}", encoding="ascii")
        path.chmod(0o755)


@contract("survives", "stop")
@pytest.mark.long
def test_a_successor_that_is_never_ready(start: Start, target: Target, tmp_path: Path) -> None:
    """Its time is over; a SIGHUP that came meanwhile is not forgotten."""
    path = tmp_path / target.binary.name
    shutil.copy(target.binary, path)
    server = start(wrapper=[*BY_PATH, str(path)])
    before = server.children()
    replace_program(path, "exec sleep 60\n")
    server.signal(signal.SIGHUP)

    def sleeps() -> bool:
        return "sleep\n" in [proc.text(pid, "comm") for pid in server.children()]

    assert wait_until(sleeps, server.patience.limit)
    replace_program(path, None)
    shutil.copy(target.binary, path)
    server.signal(signal.SIGHUP)
    assert server.serves()
    assert wait_until(lambda: "\n" in server.stderr(), READY + server.patience.limit)
    assert "was not ready after 10 s, the old one goes on\n" in server.stderr()
    assert wait_until(lambda: restarted(server, before), server.patience.limit)
    assert wait_until(lambda: not set(before) & set(server.children()), server.patience.limit)


@contract("survives", "leaks")
def test_those_who_retire_are_bounded(start: Start) -> None:
    """SIGHUP faster than clients leave: the oldest are told to stop, and the next program waits."""
    server = start(backlog=4096)
    for _ in range(RETIRED_AT_MOST + 6):
        downloads(server, 1)
        before = server.children()
        server.signal(signal.SIGHUP)
        wait_until(lambda b=before: restarted(server, b), 0.3)  # type: ignore[misc]
        assert len(server.children()) <= RETIRED_AT_MOST + 2
    assert server.serves()
