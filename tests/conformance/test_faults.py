"""What the system refuses: descriptors, processes, connections; and signals in every call."""

import contextlib
import ctypes
import itertools
import os
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.conformance import proc, tracing
from tests.conformance.matrix import FORKING, LISTENING, RINGS, SHAPES, WAITING, contract, kind
from tests.conformance.process import (
    STOP_GRACE,
    Server,
    Target,
    Unprivileged,
    limited,
    meanwhile,
    wait_until,
)
from tests.conformance.programs import Start, Traced
from tests.conformance.site import HELLO, Site, bigger_than_socket_buffers, noise
from tests.conformance.wire import LAST, ConnectionLost, ContractBroken, request

pytestmark = kind("model")
TOLD_APART = ("ENFILE", "ENOMEM", "ENOBUFS", "EPROTO", "EPERM")


def busy_share(server: Server, seconds: float) -> float:
    """Its processor time, in multiples of that of a loop that never sleeps: 1 is busy. The loop is to run for half of
    the seconds at least: where others keep it from that, one hundredth of a second of the server's would be much.
    """
    pid = server.serving()[0]
    with subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) as loop:
        try:
            before = proc.cpu_seconds(pid), proc.cpu_seconds(loop.pid)
            time.sleep(seconds)
            wait_until(lambda: proc.cpu_seconds(loop.pid) - before[1] >= seconds / 2, server.patience.limit)
            after = proc.cpu_seconds(pid), proc.cpu_seconds(loop.pid)
        finally:
            loop.kill()
    return (after[0] - before[0]) / max(0.01, after[1] - before[1])


@contract("emfile", "leaks", "survives")
def test_no_descriptor_for_the_connection(server: Server) -> None:
    """EMFILE leaves it in the queue: accept() at once again would be a busy loop."""
    used = max(proc.descriptors(server.serving()[0])) + 1
    with limited(server, "nofile", used):
        c = server.connect()
        c.send(LAST)
        share = busy_share(server, 0.6)
        assert share < 0.3, f"takes {share:.0%} of a busy loop's time while it can do nothing"
        assert server.alive()
    with contextlib.suppress(ContractBroken):  # it is served now, or was told meanwhile
        assert c.read_reply().status in (200, 503)
    assert wait_until(server.serves, server.patience.limit)


@contract("emfile", "leaks", "survives")
def test_no_descriptor_for_the_file(server: Server) -> None:
    for spare in (1, 2):
        used = max(proc.descriptors(server.serving()[0])) + 1
        with limited(server, "nofile", used + spare):
            reply = server.ask(LAST)
            assert reply.status in (200, 500, 503)
            assert reply.status != 200 or reply.body == HELLO
        assert server.serves()
        assert server.settles()


@contract("emfile", "leaks", "survives")
def test_a_limit_of_20_descriptors(start: Start) -> None:
    """Twice as many clients: silent ones, then ones that ask; then all is as before. Where all are
    waited for at once, who has been silent for the longest makes room for who comes: a client with
    a request need not wait for the time-out of those without one. (503: its connection has taken
    the last descriptor, and there is none for the file. After the first one is kept for files.)
    """
    server = start("-t", "600", wrapper=["/usr/bin/prlimit", "--nofile=20"])
    assert resource.prlimit(server.pid, resource.RLIMIT_NOFILE) == (20, 20)
    for asking in (False, False, True):
        if asking:
            with server.held():  # else who asks late makes room, as one who is silent
                clients = server.crowd(40, LAST)
            for c in clients:
                reply = c.read_reply()
                assert reply.status == 503 or (reply.status, reply.body) == (200, HELLO)
        else:
            clients = server.crowd(40)
            time.sleep(server.patience.silence)
            assert server.alive()
            for first in (True, False, False) if server.target.model.waits else ():
                clients += server.crowd(5)
                reply = server.ask(LAST)
                assert (reply.status, reply.body) == (200, HELLO) or (first and reply.status == 503)
        for c in clients:
            c.close()
        assert wait_until(server.serves, server.patience.limit)
        assert server.settles()


@contract("emfile", "concurrency", servers=WAITING)
def test_slow_readers_leave_for_who_comes(start: Start) -> None:
    """They hold all descriptors, and would for 64 KiB / 600 s. The slowest makes room, one that has
    read a megabyte does not. (503: there was no descriptor for the file; the next one is served.)
    """
    server = start("-t", "600", wrapper=["/usr/bin/prlimit", "--nofile=32"])
    with server.download() as reader:
        reader.read_exactly(2 << 20)
        server.crowd(30, request("/big.bin"), receive_buffer=4096)
        for _ in range(3):

            def served() -> bool:
                reply = server.ask(LAST)
                assert reply.status == 503 or (reply.status, reply.body) == (200, HELLO)
                return reply.status == 200

            assert wait_until(served, 2 * server.patience.limit)
        reader.read_exactly(2 << 20)


@contract("emfile", "concurrency", servers=WAITING)
def test_who_lingers_leaves_for_who_comes(start: Start) -> None:
    """A client whose last reply has not arrived has 600 seconds; where descriptors are out it is closed after one.
    (503: as above.)
    """
    server = start("-t", "600", wrapper=["/usr/bin/prlimit", "--nofile=32"])
    last = request("/medium.bin", "Range: bytes=0-59999", "Connection: close")
    server.crowd(40, last, receive_buffer=4096)

    def served() -> bool:
        reply = server.ask(LAST)
        assert reply.status == 503 or (reply.status, reply.body) == (200, HELLO)
        return reply.status == 200

    assert wait_until(served, 2 * server.patience.limit)


@contract("no-process", "survives", servers=FORKING)
def test_no_process(start: Start, unprivileged: Unprivileged) -> None:
    """fork() fails: that client is told or dropped, soon, and the next one is served."""
    server = start(user=unprivileged)
    assert server.serves()
    assert server.settles()
    with limited(server, "nproc", 1):
        for _ in range(3):
            with server.connect() as c:
                c.send(LAST)
                data = c.read_all()
                assert data == b"" or data.startswith(b"HTTP/1.1 503 "), c.transcript()
        assert server.settles()
    assert server.serves()


@contract("no-process", "survives", "leaks", servers=(*FORKING, "04-threads"))
def test_no_process_now_and_then(traced: Traced, target: Target) -> None:
    """Every third fork, or thread, fails, beginning with the second."""
    if target.spare_threads:
        pytest.skip("the first of all is not the server's own")
    server, _ = traced(tracing.FORKS, inject=f"{tracing.FORKS}:error=EAGAIN:when=2+3")
    served = []
    for _ in range(7):
        with server.connect() as c:
            c.send(LAST)
            data = c.read_all()
            served.append(data.startswith(b"HTTP/1.1 200 ") and data.endswith(HELLO))
            assert served[-1] or data == b"" or data.startswith(b"HTTP/1.1 503 "), c.transcript()
    assert served == [True, False, True, True, False, True, True]


@contract("no-process", "survives", servers=("12-aio",))
def test_fewer_threads_than_were_asked_for(traced: Traced, target: Target) -> None:
    """The four that look up files are started, and of three that read them one: the server says so, and serves."""
    if target.spare_threads:
        pytest.skip("the first of all is not the server's own")
    server, _ = traced(tracing.FORKS, "-r", "3", inject=f"{tracing.FORKS}:error=EAGAIN:when=6+")
    assert server.serves()
    assert server.stderr().startswith("12-aio: pthread_create: 1 threads instead of 3: ")


@contract("no-process", "concurrency", servers=FORKING)
def test_no_process_for_one_while_another_is_served(start: Start, unprivileged: Unprivileged) -> None:
    server = start(user=unprivileged)
    with server.connect() as first:
        first.send(LAST[:10])
        assert wait_until(lambda: len(server.children()) == 1, server.patience.limit)
        with limited(server, "nproc", 1), server.connect() as second:
            second.send(LAST)
            second.expect_gone()
        assert first.ask(LAST[10:]).body == HELLO


@contract("no-process", "survives", "concurrency", servers=(*FORKING, "04-threads"))
def test_no_process_for_a_silent_client(traced: Traced, target: Target) -> None:
    """It gets its 503 before it asks: if the server waited for its request, no other would be served meanwhile."""
    if target.spare_threads:
        pytest.skip("the first of all is not the server's own")
    server, _ = traced(tracing.FORKS, inject=f"{tracing.FORKS}:error=EAGAIN:when=1")
    with server.connect() as silent:
        assert silent.read_reply().status == 503
        silent.expect_end()
        assert server.serves()


@contract("no-process", "mechanism", servers=("03-prefork",))
def test_no_process_in_one_of_several_places(traced: Traced) -> None:
    """After a fork() that fails the server waits a second, though other places are still to be filled."""
    server, trace = traced(f"{tracing.FORKS},pselect6", "-w", "4", inject=f"{tracing.FORKS}:error=EAGAIN:when=2")
    assert trace.has(lambda calls: "pselect6" in [name for _, name, _ in calls], server.patience.limit)
    mine = [(name, result) for pid, name, result in trace.calls() if pid == server.pid]
    failed = [result for _, result in mine].index("EAGAIN")
    assert mine[failed + 1][0] == "pselect6"


@contract("mechanism", "survives", "concurrency", "stop", servers=("03-prefork", "15-slashdot"))
@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 16])
def test_workers_that_are_killed_as_soon_as_they_live(start: Start, workers: int) -> None:
    """They are replaced, at most once a second, whatever ends the pause; and stop when told to."""
    server = start("-w", str(workers))
    begin = time.monotonic()
    killed = set()
    while time.monotonic() < begin + 2.5:
        for pid in server.children():
            killed.add(pid)
            proc.send(pid, signal.SIGKILL)
        time.sleep(0.001)
    assert workers < len(killed) <= workers * (2 + time.monotonic() - begin)
    if workers > 1:
        assert wait_until(lambda: len(server.children()) == workers, server.patience.limit)
        assert wait_until(server.listens, server.patience.limit)
        assert server.serves()
    server.signal(signal.SIGTERM)
    assert server.wait(STOP_GRACE / 2 * server.patience.factor) == 0


@contract("mechanism", "survives", servers=("03-prefork", "15-slashdot"))
@pytest.mark.parametrize("workers", [1, 16])
def test_workers_that_are_killed_together(start: Start, workers: int) -> None:
    """One, and then all: they come back together, not one a second."""
    server = start("-w", str(workers))
    for number in (1, workers):
        before = server.children()
        for pid in before[:number]:
            os.kill(pid, signal.SIGKILL)

        def successors(before: list[int] = before) -> list[int]:
            return [pid for pid in server.children() if pid not in before]

        assert wait_until(lambda n=number: len(successors()) == n, server.patience.limit)  # type: ignore[misc]
        births = [int(proc.start_time(pid)) for pid in successors()]
        assert max(births) - min(births) < 5 * os.sysconf("SC_CLK_TCK")
        assert wait_until(server.listens, server.patience.limit)
        for _ in range(20):
            assert server.serves()
    server.is_back_with(workers)


@contract("survives", "setup-failure", servers=("03-prefork", "15-slashdot"))
@pytest.mark.long
def test_workers_that_cannot_be_replaced(start: Start, target: Target) -> None:
    """None is left, and none comes to serve, for seconds: it does not fork for ever, it ends."""
    server = start("-w", "1", env=tracing.ENV)  # LeakSanitizer needs descriptors, too
    server.ends_with = 1
    if target.name == "15-slashdot":  # else the next one serves before it can be killed
        hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (6, hard))

    def ends() -> bool:
        for pid in server.children():
            proc.send(pid, signal.SIGKILL)
        return not server.alive()

    assert wait_until(ends, 6 + server.patience.limit)
    assert server.wait() == 1
    assert re.search("no (worker|process) could .*\n$", server.stderr())
    assert len(server.stderr().splitlines()) < 20


@contract("mechanism", "survives", servers=("03-prefork",))
def test_deaths_that_are_far_apart(start: Start, target: Target) -> None:
    """One alone, killed each time after more than a second of its own: that may go on."""
    server = start("-w", "1", env=tracing.preload(target, CLOCK_SPEED="20"))
    for _ in range(8):
        (pid,) = server.children()
        time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
        assert wait_until(lambda p=pid: server.children() not in ([], [p]), server.patience.limit)  # type: ignore[misc]
    server.is_back_with(1)


@contract("mechanism", "survives", servers=("03-prefork",))
def test_one_that_dies_again_and_again(start: Start, target: Target) -> None:
    """In ten rounds, each time as soon as it is there. After six in which no child was left the server would end; here
    the other one lives. (A round takes 0.1 s: the clock is fast, and SIGCHLD has the parent look at it.)
    """
    server = start("-w", "2", env=tracing.preload(target, CLOCK_SPEED="10"))
    stays, _ = server.children()

    def both() -> bool:
        server.signal(signal.SIGCHLD)
        return len(server.children()) == 2

    for _ in range(10):
        assert wait_until(both, server.patience.limit), server.stderr()
        (dies,) = (pid for pid in server.children() if pid != stays)
        os.kill(dies, signal.SIGKILL)
        assert wait_until(lambda p=dies: p not in server.children(), server.patience.limit)  # type: ignore[misc]
        assert server.alive(), server.stderr()
    server.is_back_with(2)


@contract("mechanism", "survives", servers=("02-fork",))
def test_a_child_that_ends_does_not_interrupt_accept(traced: Traced) -> None:
    """Under load one ends all the time; EINTR by the dozen would be taken for an error."""
    server, trace = traced("rt_sigreturn")
    for _ in range(5):
        assert server.ask(LAST).body == HELLO
        assert server.settles()
    assert trace.has(lambda calls: len(calls) >= 5, server.patience.limit)
    assert not trace.saw("EINTR", 0)


@contract("mechanism", "survives", "stop", servers=("02-fork", "03-prefork", "15-slashdot"))
@pytest.mark.parametrize("how", ["block", "ignore"])
def test_who_started_us_did_not_want_to_hear_of_children(start: Start, how: str) -> None:
    """Both outlive exec."""
    server = start("-w", "2", wrapper=("env", f"--{how}-signal=CHLD"))
    if server.target.name == "02-fork":
        assert all(server.serves() for _ in range(6))
    else:
        os.kill(server.children()[0], signal.SIGKILL)
        server.is_back_with(2)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


@contract("survives", servers=("15-slashdot",))
def test_workers_that_die_do_not_hold_each_other_up(start: Start) -> None:
    """One after the other: the first is replaced while others die."""
    server = start("-w", "64")
    before = server.children()
    for pid in before[:-1]:
        os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
        if set(server.children()) - set(before):
            break
    else:
        pytest.fail("nobody was replaced")
    server.is_back_with(len(before))


@contract("accept-errors", "survives")
@pytest.mark.parametrize("error", ["ECONNABORTED", "EINTR", "EMFILE", "EAGAIN", *TOLD_APART])
def test_errors_of_accept(target: Target, traced: Traced, error: str) -> None:
    """accept(2) gives the new connection's errors too; none of them is the server's end."""
    if error in TOLD_APART and target.name not in SHAPES:
        pytest.skip("told apart by one function for all")
    if error == "EAGAIN" and target.model.edge_triggered_listener:
        pytest.skip("with edges EAGAIN means that nobody is left, and the kernel keeps to that")
    inject = f"accept,accept4:error={error}:when=1..2"
    server, trace = traced("accept,accept4", inject=inject, operations=True)
    assert server.serves()
    assert server.serves()
    assert trace.saw(error, server.patience.limit), "the error was never given"


@contract("signals", "survives")
@pytest.mark.parametrize(
    ("calls", "when"),
    [("recvfrom,recvmsg", "1+2"), ("recvfrom,recvmsg", "2+2"), ("sendto,sendmsg", "1+2")],
)
def test_calls_that_are_interrupted(target: Target, traced: Traced, calls: str, when: str) -> None:
    """Every second call on a socket fails with EINTR."""
    server, trace = traced(calls, inject=f"{calls}:error=EINTR:when={when}", operations=True)
    for _ in range(3):
        assert server.ask(LAST).body == HELLO
        assert len(server.get("/medium.bin").body) == 300_007
    if target.model.ring:  # others may have made that call once only, in each of their processes
        assert trace.saw("EINTR", server.patience.limit)


@contract("signals", "file-changes", "survives")
@pytest.mark.parametrize("error", ["EINTR", "EIO"])
def test_reading_a_file_fails(target: Target, traced: Traced, own_site: Site, error: str) -> None:
    """An interrupted call is made again; a disk that fails ends that connection only."""
    # More than one call takes: of those that send most, more than the socket takes.
    size = 300_007 if target.model.turn < 300_007 else bigger_than_socket_buffers()
    path = own_site.write("file.bin", noise(size))
    calls = "read,pread64,readv,preadv,sendfile,splice,mmap"
    # A ring's reads are counted for all files: every third is the second of this one.
    step = 3 if target.model.ring else 2
    inject: str | list[str] = f"{calls}:error={error}:when=2+{step}"
    if target.name == "12-aio":  # its thread reads only what is not in memory
        inject = ["preadv2:error=EAGAIN", f"{calls}:error={error}:when=2+{step}"]
    server, _ = traced(
        calls if isinstance(inject, str) else f"{calls},preadv2",
        *target.model.one_reader,
        inject=inject,
        path=path,
        root=own_site.root,
        operations=True,
    )
    content = path.read_bytes()
    for _ in range(2):
        with server.connect() as c:
            c.send(request("/file.bin", "Connection: close"))
            assert c.read_head().status == 200
            body = c.read_all()
            assert content.startswith(body)
            assert (body == content) == (error == "EINTR"), f"{len(body)} of {len(content)} bytes"
        assert server.serves()


@contract("500", "survives", servers=SHAPES)
def test_opening_a_file_fails(traced: Traced) -> None:
    server, _ = traced("openat2", inject="openat2:error=EIO:when=1..1", operations=True)
    assert server.get("/hello.txt").status == 500
    assert wait_until(server.serves, server.patience.limit)  # the first call of each thread fails


@contract("500", "leaks", servers=[name for name in SHAPES if name not in RINGS])
def test_a_file_that_is_open_and_cannot_be_looked_at(traced: Traced, docroot: Site) -> None:
    """It is closed again."""
    stat = "fstat,newfstatat"
    server, _ = traced(stat, inject=f"{stat}:error=EIO", path=docroot.root / "hello.txt")
    for _ in range(3):
        assert server.get("/hello.txt").status == 500
    assert server.settles()


@contract("survives", "leaks", servers=LISTENING)
def test_no_memory_now_and_then(target: Target, start: Start, tmp_path: Path) -> None:
    """Every other piece of memory is refused: a client may go without a reply, nobody else may."""
    switch = tmp_path / "switch"
    server = start(env=tracing.preload(target, "-DMEMORY", NO_MEMORY=str(switch)))
    assert server.serves()
    switch.touch()
    for path in ("/hello.txt", "/medium.bin", "/nothing") * 5:
        with server.connect() as c:
            c.send(request(path)[:20])
            c.try_send(request(path, "Connection: close")[20:])
            data = c.read_all()
            assert data == b"" or data.startswith(b"HTTP/1.1 "), c.transcript()
    switch.unlink()
    assert wait_until(server.serves, server.patience.limit)
    assert server.settles()


@contract("survives", "leaks", servers=LISTENING)
def test_no_memory_for_a_connection(target: Target, start: Start, tmp_path: Path) -> None:
    """Each piece is refused: a client that cannot be served is told so."""
    switch = tmp_path / "switch"
    server = start(env=tracing.preload(target, "-DMEMORY", NO_MEMORY=str(switch)))
    assert server.serves()
    switch.write_text("all")
    for _ in range(3):
        with server.held():
            c = server.connect()
            c.send(LAST)
        assert c.read_reply().status in (200, 503)
        c.expect_end()
    switch.unlink()
    assert wait_until(server.serves, server.patience.limit)
    assert server.settles()


@contract("signals", "survives", servers=("08-sigio",))
def test_signals_that_are_not_the_kernels(server: Server) -> None:
    """What the kernel says with a signal, others of the same user may say as they like."""
    sigqueue = ctypes.CDLL(None, use_errno=True).sigqueue
    with server.connect() as c:
        c.send(LAST[:20])
        with server.held():  # those that are waited for do not count as blocked
            ready = max(proc.blocked_signals(server.pid))
            for descriptor in (-1, -(1 << 31), (1 << 31) - 1, 1 << 20, *range(16)):
                assert sigqueue(server.pid, ready, ctypes.c_void_p(descriptor)) == 0
        assert c.ask(LAST[20:]).body == HELLO
    assert server.serves()


STORM = (signal.SIGWINCH, signal.SIGCHLD, signal.SIGSTOP, signal.SIGCONT, signal.SIGURG)


@contract("survives", servers=("10-kqueue",))
def test_a_change_does_not_outlive_its_client(traced: Traced) -> None:
    """Clients that come and go in one turn leave nothing in the list of changes: whatever error the
    kernel had for it would come with a pointer to memory that has been freed. (Of what is closed
    Linux says EBADF, and a server that trusts in that only looks right.)
    """
    perturbed = {"MALLOC_PERTURB_": "85", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    server, trace = traced("epoll_ctl", inject="epoll_ctl:error=ENOSPC:when=5+", env=perturbed)
    for _ in range(3):
        with server.held():
            for c in server.crowd(16):
                c.close()
        assert server.rests()
        assert server.alive(), server.stderr()

    def is_served() -> bool:
        """Its request is there when it is accepted: else it is registered, and that is refused."""
        with server.held():
            c = server.connect()
            c.send(LAST)
        try:
            return c.read_reply().status == 200
        except ConnectionLost:
            return False

    assert trace.count("epoll_ctl") < 16
    assert any(is_served() for _ in range(10))


@contract("signals", "any-length")
def test_a_storm_of_signals(start: Start, docroot: Site) -> None:
    """Calls that sleep return early, with EINTR or fewer bytes: nothing may be lost by it."""
    server = start(env=tracing.ENV)
    content = (docroot.root / "big.bin").read_bytes()[: 6 << 20]

    def send_to_all(*numbers: signal.Signals) -> None:
        for signum, pid in itertools.product(numbers, server.processes()):
            if pid != server.pid or not server.target.model.under_inetd:
                proc.send(pid, signum)
        time.sleep(0.0005)

    with meanwhile(lambda: send_to_all(*STORM)):
        with server.connect(receive_buffer=65536) as c:
            head = request("/big.bin", f"Range: bytes=0-{len(content) - 1}", "Connection: close")
            for at in range(0, len(head), 5):
                c.send(head[at : at + 5])
                time.sleep(0.002)
            assert c.read_head().status == 206
            assert c.read_exactly(len(content)) == content
            c.expect_end()
        for _ in range(20):
            assert server.serves()
    send_to_all(signal.SIGCONT)
