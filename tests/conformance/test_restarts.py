"""15-slashdot: how its workers come and go, one or many of them: stops, and SIGHUP."""

import os
import re
import resource
import shlex
import shutil
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conformance import proc, tracing
from tests.conformance.matrix import contract, kind
from tests.conformance.process import STOP_GRACE, Server, Target, meanwhile, wait_until
from tests.conformance.programs import Run, Start, Traced, complaint
from tests.conformance.site import HELLO, Site
from tests.conformance.wire import ASK, LAST, Connection, request

READY = 10.0  #: seconds for a new program to be ready
RETIRED_AT_MOST = 16  #: programs at a time, with their workers

pytestmark = [kind("model"), pytest.mark.servers("15-slashdot")]


def restarted(server: Server, before: list[int], workers: int = 0) -> bool:
    """True once there are as many other workers (0: as it began with), ready to serve."""
    new = [pid for pid in server.children() if pid not in before]
    wanted = server.target.model.threads_of_worker + server.target.model.looks_up_by
    ready = [pid for pid in new if proc.threads(pid) > wanted]
    return len(ready) >= (workers or server.base.children)


def restart(server: Server) -> None:
    before = server.children()
    server.signal(signal.SIGHUP)
    assert wait_until(lambda: restarted(server, before), server.patience.limit)


def downloads(server: Server, number: int) -> list[Connection]:
    """Of a file that does not fit into the buffers, each at the end of its head."""
    last = ("/big.bin", "Connection: close")
    return [server.download(*last, window=65536) for _ in range(number)]


def all_finish(server: Server, clients: Sequence[Connection], content: bytes, signalled: float) -> bool:
    """Whether each gets the whole file, all at the same time: the 5 s of a server that stops are for all of them."""
    with ThreadPoolExecutor(len(clients)) as pool:
        found = pool.map(lambda c: server.finishes(c, len(content), signalled), clients)
        return all(body == content for body in found)


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


@contract("mechanism")
def test_a_worker_for_each_core(start: Start) -> None:
    """Without -w: the shell takes out the -w 1 that each test gives."""
    server = start(wrapper=["/bin/sh", "-c", 'program=$1; shift 3; exec "$program" "$@"', "sh"])
    assert len(server.children()) == len(os.sched_getaffinity(0))


@contract("setup-failure")
def test_the_port_is_not_shared_with_another_server(start: Start, run: Run) -> None:
    """SO_REUSEPORT would let any server of the same user have a part of the guests."""
    for first in (("-l", "1"), ("-w", "2")):
        server = start(*first)
        for more in (("-w", "1"), ("-w", "2"), ("-l", "1")):
            done = run(server.target.binary, "-p", str(server.address[1]), *more, ".")
            expected = "bind .*: Address already in use"
            assert re.fullmatch(expected, complaint(done, 1, "15-slashdot"))


@contract("setup-failure", "listening-line")
def test_a_worker_that_cannot_be_set_up(target: Target, run: Run, docroot: Site, tmp_path: Path) -> None:
    """Then nobody is told that it listens: its message, once, and the end."""
    calls = ["eventfd2", "epoll_create1", "signalfd4", "epoll_ctl", "dup", "clone3"]
    trace = tracing.Trace(tmp_path / "trace", ",".join(calls))
    for call in calls:
        inject = ["-e", f"inject={call}:error=ENOMEM"]
        command = [*trace.wrapper(), *inject, target.binary, "-w", "3", "-p", "0", docroot.root]
        message = complaint(run(*command, env=trace.env), 1, "15-slashdot")
        assert re.search(": (Cannot allocate memory|Resource temporarily unavailable)$", message)


@contract("survives", "concurrency")
def test_a_socket_that_no_worker_serves_leaves_the_group(start: Start) -> None:
    """Its worker is killed, and the next one cannot be set up. From then on, and not only after
    the next pause, new clients come to the other worker; those in the queue are let go. Once there
    is room for a worker all is as before.
    """
    server = start("-w", "2", env=tracing.ENV)  # LeakSanitizer needs descriptors, too
    hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (6, hard))
    began, served = time.monotonic(), 0
    os.kill(server.children()[0], signal.SIGKILL)
    queued = server.crowd(20, LAST)
    assert wait_until(lambda: "Too many" in server.stderr(), server.patience.limit)
    assert wait_until(lambda: len(server.children()) == 1, server.patience.limit)
    time.sleep(0.1)  # until the master has heard of its end
    while served < 40 and server.stderr().count("Too many") == 1:  # the second time comes two seconds later
        assert server.serves()
        served += 1
    assert served >= 8  # half of them would have come to the socket that nobody serves
    for c in queued:
        reply = c.read_all()
        assert reply.endswith(HELLO) or str(c.ended).startswith("reset"), c.transcript()
    assert len(server.stderr().splitlines()) <= 1 + 2 * (1 + time.monotonic() - began)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (hard, hard))
    server.is_back_with(2)
    for _ in range(40):
        assert server.serves()


@contract("survives")
@pytest.mark.long
def test_a_pause_is_not_longer_than_its_reason(start: Start) -> None:
    """One worker dies as soon as it is started, again and again, and is waited for longer each
    time. Then the other dies, and none is left: that is a pause of a second, not of eight.
    """
    server = start("-w", "2")
    old = max(server.children())
    time.sleep(1.1)  # so that its end is that of a worker that has served

    def young_ends() -> None:
        (young,) = set(server.children()) - {old}
        os.kill(young, signal.SIGKILL)
        assert wait_until(lambda: young not in server.children(), server.patience.limit)

    for _ in range(3):
        young_ends()
        server.is_back_with(2)
    young_ends()
    time.sleep(0.1)  # until the master has set its pause
    os.kill(old, signal.SIGKILL)
    began = time.monotonic()
    assert wait_until(lambda: len(server.children()) == 2, server.patience.limit)
    assert time.monotonic() - began < 4 * server.patience.factor


@contract("survives")
@pytest.mark.long
def test_workers_that_serve_and_die_are_replaced_for_ever(start: Start) -> None:
    """A client's request may be what kills them: it must not end the program."""
    server = start()
    for _ in range(7):
        (worker,) = server.children()
        os.kill(worker, signal.SIGKILL)
        assert wait_until(
            lambda w=worker: any(new != w for new in server.children()),  # type: ignore[misc]
            server.patience.limit,
        )
        server.is_back_with(1)
        assert server.serves()
    assert server.stderr() == "15-slashdot: a worker was ended by signal 9\n" * 7


@contract("survives", "concurrency")
def test_a_worker_that_cannot_serve_stays_deaf(start: Start) -> None:
    """It lacks a descriptor at the end of its set-up: until there is one its socket gets none."""
    server = start("-w", "2")
    hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)[1]
    lost = server.children()[0]
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (max(proc.descriptors(lost)), hard))
    os.kill(lost, signal.SIGKILL)
    assert wait_until(lambda: server.stderr().count("Too many") > 1, server.patience.limit)
    for _ in range(20):
        with server.connect() as c:
            c.send(LAST)
            assert c.read_reply().body == HELLO
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (hard, hard))
    server.is_back_with(2)


@contract("stop-in-flight", "survives")
def test_a_successor_that_is_slow(start: Start, target: Target, tmp_path: Path) -> None:
    """Longer than the pause of its master: the sockets are still those of the old workers."""
    hold = tmp_path / "hold"
    server = start("-w", "3", env=tracing.preload(target, HOLD=str(hold)))
    before = server.children()
    hold.touch()
    server.signal(signal.SIGHUP)
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        assert server.serves()
        assert set(before) <= set(server.children()), server.stderr()
    hold.unlink()
    assert wait_until(lambda: restarted(server, before), server.patience.limit)
    assert server.serves()
    assert server.stderr() == ""


@contract("setup-failure", "survives", "concurrency")
def test_a_candidate_accepts_nobody(start: Start, target: Target, tmp_path: Path) -> None:
    """Its worker can serve, but it is not yet ready, and will fail. A client that comes meanwhile
    is not its client, and is not forgotten by the old worker.
    """
    hold = tmp_path / "hold"
    server = start(env=tracing.preload(target, HOLD=str(hold)))
    (old,) = server.children()
    hold.touch()
    server.signal(signal.SIGHUP)

    def candidates() -> list[int]:
        return [pid for pid in proc.children(server.pid) if pid != old and proc.children(pid)]

    assert wait_until(lambda: candidates() != [], server.patience.limit)
    (candidate,) = candidates()
    (young,) = proc.children(candidate)
    proc.stop(candidate)
    hold.unlink()
    wanted = target.model.threads_of_worker + target.model.looks_up_by
    assert wait_until(lambda: proc.threads(young) > wanted, server.patience.limit)
    proc.stop(old)
    client = server.connect()
    client.send(ASK)
    assert client.hears_nothing(server.patience.silence)
    assert len(proc.sockets(young)) == 1  # the one that listens
    os.kill(candidate, signal.SIGKILL)
    os.kill(old, signal.SIGCONT)
    assert client.read_reply().body == HELLO
    assert wait_until(lambda: server.children() == [old], server.patience.limit)
    assert "the new program was ended by signal 9, the old one goes on\n" in server.stderr()


@contract("setup-failure", "survives")
def test_a_restart_while_a_worker_is_missing(start: Start) -> None:
    """Its socket is shut, and the successor's worker makes it listen: then it stays open."""
    server = start("-w", "2")
    hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (6, hard))
    before = server.children()
    os.kill(before[0], signal.SIGKILL)
    assert wait_until(lambda: server.stderr().count("Too many") > 1, server.patience.limit)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (hard, hard))
    server.signal(signal.SIGHUP)
    assert wait_until(lambda: restarted(server, before), server.patience.limit)
    for _ in range(40):
        assert server.serves()
    assert "accept" not in server.stderr()
    server.is_back_with(2)


@contract("setup-failure", "survives")
def test_a_restart_before_it_listens(start: Start, target: Target, tmp_path: Path) -> None:
    """The wish waits for the line; a successor that overtakes the first workers would end them."""
    hold = tmp_path / "hold"

    def ask_for_it() -> None:
        assert wait_until(lambda: hold.exists() and hold.read_text().endswith("\n"), 10)
        first = int(hold.read_text())
        assert wait_until(lambda: proc.children(first) != [], 10)
        os.kill(first, signal.SIGHUP)
        time.sleep(0.4)
        before.extend(proc.children(first))
        hold.unlink()

    before: list[int] = []
    asks = threading.Thread(target=ask_for_it)
    asks.start()
    wrapper = ("/bin/sh", "-c", 'echo $$ > "$0"; exec "$@"', str(hold))
    server = start("-w", "2", wrapper=wrapper, env=tracing.preload(target, HOLD=str(hold)))
    asks.join()
    assert len(before) == 1
    # two: what it began with was perhaps counted after the successor had been started
    assert wait_until(lambda: restarted(server, before, 2), server.patience.limit)
    assert server.serves()
    assert server.stderr() == ""
    server.is_back_with(2)


@contract("stop-in-flight", "stop")
def test_downloads_are_finished_while_other_workers_end(start: Start, docroot: Site) -> None:
    """The idle ones at once, the others one by one: to hear of each is no time gone by."""
    server = start("-w", "64")
    content = (docroot.root / "big.bin").read_bytes()
    busy = downloads(server, 4)
    signalled = time.monotonic()
    server.signal(signal.SIGTERM)
    assert all_finish(server, busy, content, signalled)
    for c in busy:
        c.expect_end()
    assert server.wait() == 0


@contract("stop-in-flight", "pipelining", "keep-alive", "drain")
@pytest.mark.parametrize("workers", ["1", "16"])
def test_clients_that_pipeline_over_a_restart(start: Start, docroot: Site, workers: str) -> None:
    """The reply in flight is whole, and each behind it, up to one that says it is the last."""
    server = start("-t", "60", "-w", workers)
    content = (docroot.root / "big.bin").read_bytes()
    clients = server.crowd(2, receive_buffer=65536)
    for c in clients:
        c.ask().demand_keep_alive()
        c.send(request("/big.bin"))
        assert c.read_head().status == 200
    server.signal(signal.SIGHUP)
    for c in clients:
        c.send(ASK * 50)
    for c in clients:
        assert c.read_while_sending(len(content)) == content
    for c in clients:
        c.finish_sending()
        replies = c.read_all()
        assert c.ended == "closed", c.transcript()
        assert replies == b"" or replies.endswith(HELLO) or b" 400 " in replies, c.transcript()
    assert server.serves()
    server.is_back_with(int(workers))


@contract("stop")
def test_a_worker_that_does_not_stop_is_killed(start: Start, target: Target) -> None:
    """The master does it some seconds later, by a clock that is twenty times as fast. Any signal wakes it, and it looks
    at that clock.
    """
    server = start("-w", "2", env=tracing.preload(target, CLOCK_SPEED="20"))
    proc.stop(server.children()[0])
    server.signal(signal.SIGTERM)

    def ends() -> bool:
        proc.send(server.pid, signal.SIGUSR1)
        return not server.alive()

    assert wait_until(ends, server.patience.limit)
    assert server.wait() == 0


@contract("stop")
def test_stopping_after_a_restart(start: Start, docroot: Site) -> None:
    """Those of before are another program's: they are told as well, and finish what they send."""
    server = start("-t", "60", "-w", "16")
    content = (docroot.root / "big.bin").read_bytes()
    kept = server.connect()
    assert kept.ask().body == HELLO
    busy = downloads(server, 1)
    restart(server)
    busy += downloads(server, 1)
    signalled = time.monotonic()
    server.signal(signal.SIGTERM)
    kept.expect_end()
    assert wait_until(lambda: len(server.children()) <= len(busy), server.patience.limit)
    assert all_finish(server, busy, content, signalled)
    began = time.monotonic()
    assert server.wait() == 0
    assert time.monotonic() - began < STOP_GRACE / 2 * server.patience.factor


@contract("stop-in-flight", "keep-alive")
@pytest.mark.parametrize("workers", ["1", "64"])
def test_a_restart_ends_no_connection(start: Start, docroot: Site, workers: str) -> None:
    """A download goes on, a kept connection is told; the old workers are gone when both are."""
    server = start("-t", "60", "-w", workers)
    content = (docroot.root / "big.bin").read_bytes()
    kept = server.connect()
    assert kept.ask().keeps_alive
    (download,) = downloads(server, 1)
    old = set(server.children())
    restart(server)
    assert wait_until(lambda: len(old & set(server.children())) <= 2, server.patience.limit)
    assert server.serves()

    def is_told() -> bool:  # the new workers were ready before the old ones heard of anything
        reply = kept.ask()
        assert reply.body == HELLO
        return not reply.keeps_alive

    assert wait_until(is_told, server.patience.limit)
    kept.expect_end()
    assert download.read_exactly(len(content)) == content
    download.expect_end()
    assert wait_until(lambda: not old & set(server.children()), server.patience.limit)
    assert server.line  # said once: finish() looks at what follows on stdout


@contract("stop-in-flight", "survives")
@pytest.mark.long
@pytest.mark.parametrize("workers", ["2", "16"])
def test_restarts_under_load_lose_nobody(start: Start, workers: str) -> None:
    server = start("-w", workers, backlog=4096)
    served = [0]

    def ask() -> None:
        assert server.get("/hello.txt").body == HELLO
        served[0] += 1

    with meanwhile(ask, ask, ask):
        for _ in range(10):
            before = served[0]
            restart(server)
            assert wait_until(lambda b=before: served[0] > b + 20, server.patience.limit)  # type: ignore[misc]
    assert wait_until(lambda: len(server.children()) == int(workers), server.patience.limit)


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


@contract("survives", "concurrency")
@pytest.mark.parametrize("again", [False, True], ids=["first", "successor"])
def test_only_the_master_retires_a_worker(start: Start, again: bool) -> None:
    """pkill -USR1, by which other servers open their log anew, and the master's own signal. A worker with a client, and
    its socket, would stay.
    """
    server = start("-w", "2")
    if again:
        restart(server)
        assert wait_until(lambda: len(server.children()) == 2, server.patience.limit)
    with server.download():
        before = sorted(server.session())
        for pid in before:
            for number in (signal.SIGUSR1, signal.SIGRTMAX):
                os.kill(pid, number)
        time.sleep(server.patience.silence)
        assert all(server.serves() for _ in range(40)), "some connections go to a socket that nobody accepts from"
        assert sorted(server.session()) == before


@contract("survives", "concurrency")
def test_a_signal_of_others_does_not_hide_the_masters(start: Start) -> None:
    """A standard signal that is pending is not sent again: what the master sends must not be one that others send."""
    server = start("-w", "1")
    (old,) = server.children()
    proc.stop(old)
    os.kill(old, signal.SIGUSR1)
    try:
        restart(server)
        assert server.serves()  # the new worker accepts, and the old one has been told to retire, or will be at once
        time.sleep(server.patience.silence)
    finally:
        os.kill(old, signal.SIGCONT)
    assert wait_until(lambda: old not in server.session(), server.patience.limit)


@contract("stop")
def test_who_retires_has_the_grace_of_the_others(traced: Traced) -> None:
    """From the SIGTERM on, although he has been stopping for longer."""
    server, trace = traced("?alarm,setitimer")
    retired = set(server.children())
    with server.download():
        restart(server)
        server.signal(signal.SIGTERM)
        assert trace.has(lambda calls: retired <= {pid for pid, *_ in calls}, server.patience.limit)
    assert server.wait() == 0


@contract("survives", "setup-failure")
def test_a_docroot_that_is_away_for_a_moment(start: Start, own_site: Site) -> None:
    """The old workers go on, even those that had the SIGHUP as well (pkill -HUP)."""
    server = start("-w", "16", root=own_site.root)
    before = sorted(server.children())
    away = own_site.top / "away"
    own_site.root.rename(away)
    for pid in server.session():
        os.kill(pid, signal.SIGHUP)
    expected = r"15-slashdot: restart: .* status 1, the old one goes on: .* No such file or .*"
    assert wait_until(lambda: "\n" in server.stderr(), server.patience.limit)
    assert re.fullmatch(expected, server.stderr().rstrip("\n"))
    for _ in range(64):
        assert server.serves()
    assert sorted(server.children()) == before
    away.rename(own_site.root)
    restart(server)
    assert server.serves()
    assert wait_until(lambda: not set(before) & set(server.children()), server.patience.limit)


@pytest.fixture
def program(target: Target, tmp_path: Path) -> Path:
    """A copy of the server's program, that can be replaced."""
    return Path(shutil.copy(target.binary, tmp_path))


def start_by(start: Start, program: Path) -> Server:
    return start(wrapper=["/bin/sh", "-c", 'shift; exec "$0" "$@"', str(program)])


def replace(program: Path, script: str) -> None:
    """Not written over: the old one runs."""
    program.unlink()
    program.write_text(f"#!/bin/sh\n{script}", encoding="ascii")
    program.chmod(0o755)


@contract("survives")
def test_a_program_that_cannot_be_started_anew(start: Start, program: Path) -> None:
    server = start_by(start, program)
    before = server.children()
    for number, (script, why) in enumerate(
        (
            ("echo two >&2\necho lines >&2\nexit 3\n", r"status 3, .*: two lines"),
            ("head -c 3000 /dev/zero | tr '\\0' x >&2\nexit 3\n", r"status 3, .*: x{512}"),
            ("kill -KILL $$\n", r"signal 9, the old one goes on"),
            (None, r"status 1, .* execvp .*: No such file or directory"),
        )
    ):
        replace(program, script or "")
        if script is None:
            program.unlink()
        server.signal(signal.SIGHUP)
        assert wait_until(lambda n=number: server.stderr().count("\n") > n, server.patience.limit)  # type: ignore[misc]
        expected = rf"15-slashdot: restart: the new program .*{why}"
        assert re.fullmatch(expected, server.stderr().splitlines()[-1])
        assert server.children() == before
        assert server.serves()


@contract("survives")
def test_what_a_program_says_before_it_is_ready(start: Start, target: Target, program: Path) -> None:
    """The server repeats it on stderr, and the restart is no failure."""
    server = start_by(start, program)
    before = server.children()
    replace(program, f'echo in good time >&2\nexec {shlex.quote(str(target.binary))} "$@"\n')
    server.signal(signal.SIGHUP)
    assert wait_until(lambda: "\n" in server.stderr(), server.patience.limit)
    assert server.stderr() == "15-slashdot: restart: the new program is ready, and said: in good time\n"
    assert wait_until(lambda: restarted(server, before), server.patience.limit)
    assert server.serves()


@contract("survives", "stop")
@pytest.mark.long
def test_a_successor_that_is_never_ready(start: Start, target: Target, program: Path) -> None:
    """Its time is over; a SIGHUP that came meanwhile is not forgotten."""
    server = start_by(start, program)
    before = server.children()
    replace(program, "exec sleep 60\n")
    server.signal(signal.SIGHUP)

    def sleeps() -> bool:
        return "sleep\n" in [proc.text(pid, "comm") for pid in server.children()]

    assert wait_until(sleeps, server.patience.limit)
    program.unlink()
    shutil.copy(target.binary, program)
    server.signal(signal.SIGHUP)
    assert server.serves()
    assert wait_until(lambda: "\n" in server.stderr(), READY + server.patience.limit)
    assert "was not ready after 10 s, the old one goes on\n" in server.stderr()
    assert wait_until(lambda: not sleeps(), server.patience.limit)
    assert wait_until(lambda: restarted(server, before), server.patience.limit)
    assert wait_until(lambda: not set(before) & set(server.children()), server.patience.limit)


@contract("survives")
def test_a_successor_that_is_killed(start: Start) -> None:
    """A line tells of it, and another takes its place."""
    server = start()
    restart(server)
    assert wait_until(lambda: len(proc.children(server.pid)) == 1, server.patience.limit)
    (successor,) = proc.children(server.pid)
    os.kill(successor, signal.SIGKILL)
    assert wait_until(lambda: "\n" in server.stderr(), server.patience.limit)
    assert server.stderr() == "15-slashdot: a successor was ended by signal 9\n"

    def another() -> bool:
        found = proc.children(server.pid)
        return found != [] and found != [successor] and proc.children(found[0]) != []

    assert wait_until(another, server.patience.limit)
    server.is_back_with(1)
    assert server.serves()


@contract("setup-failure", "survives", "emfile")
def test_a_successor_that_cannot_be_handed_over_to(start: Start) -> None:
    """There is a descriptor for each end of the pipe, and no more."""
    server = start()
    before = server.children()
    used = proc.descriptors(server.pid)
    (_, second, *_) = [fd for fd in range(len(used) + 2) if fd not in used]
    hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (second + 1, hard))
    server.signal(signal.SIGHUP)
    assert wait_until(lambda: "\n" in server.stderr(), server.patience.limit)
    assert re.fullmatch(
        r"15-slashdot: restart: the new program ended with status 1, .*: Too many open files\n",
        server.stderr(),
    )
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (hard, hard))
    assert server.children() == before
    assert server.serves()
