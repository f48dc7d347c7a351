"""The servers whose work is done by an io_uring: what no system call shows, what a ring runs out
of, and what is said where there is none.
"""

import ctypes
import functools
import os
import re
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.conformance import proc, tracing
from tests.conformance.matrix import RINGS, SANITIZED, contract, kind
from tests.conformance.process import EXIT_UNSUPPORTED, Target, meanwhile, wait_until
from tests.conformance.programs import Run, Start, Traced, complaint
from tests.conformance.site import HELLO, OLD_DATE, Site
from tests.conformance.wire import ASK, LAST, Connection, request

pytestmark = [kind("model"), pytest.mark.servers(*RINGS)]
#: whatever is done to a descriptor, and by whichever name; mmap too, but malloc() has that
CALLS = "%network,%desc,%file"
MEMORY = {"mmap", "mmap2", "io_uring_enter"}
#: more than one wait brings to an end, and more than there are pieces to send from
MANY = 700
FULL_STEP_S = 1.0  #: after which the slowest reply of a full server may have to leave (FULL_STEP_MS)


@contract("mechanism", "concurrency")
def test_no_call_but_one(traced: Traced) -> None:
    """No client and no file is touched by a system call of the server, whatever is asked."""
    server, trace = traced(CALLS)
    listening = proc.sockets(server.pid)
    kept = server.crowd(3)
    for c in kept:
        for path in ("/hello.txt", "/medium.bin", "/nothing", "/sub", "/fifo", "/%2e%2e/x"):
            c.ask(request(path))
        assert c.ask(request("/hello.txt", method="HEAD"), "HEAD").status == 200
        assert c.ask(request("/hello.txt", f"If-Modified-Since: {OLD_DATE}")).status == 304
        assert c.ask(request("/hello.txt", "Range: bytes=99-")).status == 416
    assert proc.sockets(server.pid) == listening
    assert proc.direct_descriptors(server.pid) == len(kept)
    assert server.ask(request("/", "Content-Length: 10", method="POST") + b"body").status == 405
    assert trace.has(lambda calls: len(calls) > 40, server.patience.limit)
    names = trace.names()
    set_up = names.index("write", names.index("getsockname"))  # its line is the end of that
    serving = set(names[set_up + 1 :])
    assert serving <= MEMORY, f"system calls of its own: {serving - MEMORY}"


@contract("mechanism")
@pytest.mark.parametrize(("options", "most"), [((), 256), (("-r", "2"), 2)])
def test_workers_of_the_kernel(traced: Traced, options: tuple[str, ...], most: int) -> None:
    """What would block is done by them, so many at most."""
    server, trace = traced("io_uring_register", *options)
    clients = server.crowd(100)
    seen = 0
    for _ in range(10):
        for c in clients:
            c.send(ASK)
        seen = max(seen, proc.threads_of_kernel(server.pid)[1])
        for c in clients:
            assert c.read_reply().body == HELLO
    assert 1 <= max(seen, proc.threads_of_kernel(server.pid)[1]) <= most
    assert proc.threads_of_kernel(server.pid)[0] == 1
    told = [line for line in trace.lines() if "IOWQ_MAX_WORKERS" in line]
    assert any(re.search(rf"(BOUND\]=|\[){most}, ", line) for line in told), told


@contract("survives", "concurrency", "leaks")
def test_more_at_once_than_the_queues_hold(start: Start) -> None:
    """Completions, receive buffers, pieces: of each there are fewer than clients that ask."""
    server = start(backlog=MANY)
    clients = server.crowd(MANY)
    assert wait_until(lambda: proc.direct_descriptors(server.pid) == MANY, server.patience.limit)
    with server.held():
        for c in clients:
            c.send(LAST)
    for c in reversed(clients):
        assert c.read_reply().body == HELLO
        c.expect_end()
    assert server.settles()


@contract("survives", "concurrency", "memory")
def test_more_who_do_not_read_than_there_are_pieces(start: Start) -> None:
    """A send that waited for its client would keep a piece as long as the client likes."""
    server = start(backlog=MANY)
    stuck = server.crowd(300, request("/big.bin"), receive_buffer=4096)
    for c in stuck:
        assert c.read_head().status == 200
    assert server.serves()


@contract("mechanism", "concurrency")
def test_no_send_may_wait(target: Target, start: Start, tmp_path: Path) -> None:
    """Nor one that seldom would: a socket that is full by chance to the byte."""
    trace = tracing.RingTrace(target, tmp_path / "trace")
    with start(env=trace.env).connect(receive_buffer=4096) as c:
        assert len(c.ask(request("/medium.bin", "Connection: close")).body) == 300_007
    flags = trace.flags("SEND")
    assert len(flags) >= 5
    assert all(flag & socket.MSG_DONTWAIT for flag in flags)


def a_guest_stays_pending(traced: Traced) -> bool:
    """Whether it was seen that he does, without a call for him; False if it took longer than a reply may be slow."""
    places = 12
    limit = ["/usr/bin/prlimit", f"--nofile={places}:40"]
    server, trace = traced("io_uring_enter", wrapper=limit)
    kept = server.crowd(places, receive_buffer=4096)
    assert wait_until(lambda: proc.direct_descriptors(server.pid) == places, server.patience.limit)
    subprocess.run(["/usr/bin/prlimit", "--pid", str(server.serving()[0]), "--nofile=40:"], check=True)
    began = time.monotonic()
    for c in kept:
        c.send(request("/big.bin"))
    for c in kept:
        assert c.read_head().status == 200
    with server.connect() as guest:
        guest.send(LAST)
        silence = min(0.3, (began + FULL_STEP_S - time.monotonic()) / 2 - 0.05)
        if silence < 0.1:
            return False
        quiet = [guest.hears_nothing(silence)]  # meanwhile all sockets have filled
        before = len(trace.calls())
        quiet.append(guest.hears_nothing(silence))
        calls = len(trace.calls()) - before
        if time.monotonic() - began >= FULL_STEP_S:
            return False
        assert all(quiet)
        assert calls <= 10 + 20 * silence
        kept[1].close()
        assert guest.read_reply().body == HELLO
    return True


@contract("emfile", "survives", "concurrency")
def test_pending_connections_without_a_place_in_the_table(traced: Traced) -> None:
    """All places are being answered: who is pending stays so, and nobody tries again and again."""
    if not any(a_guest_stays_pending(traced) for _ in range(5)):
        pytest.skip("so busy a machine that the slowest reply may have to leave before anything is seen")


@contract("emfile", "survives", "concurrency")
def test_who_comes_to_a_full_table_costs_one_connection(start: Start) -> None:
    """Whoever leaves has his place until his socket has been shut, and the newcomer waits on."""
    places = 24
    server = start(wrapper=["/usr/bin/prlimit", f"--nofile={places}:{places}"])
    idle = [server.connect() for _ in range(places)]
    for c in idle:
        assert c.ask(ASK).body == HELLO
    time.sleep(0.3)  # until then they are not idle
    with server.connect() as guest:
        guest.send(LAST)
        assert guest.read_reply().body == HELLO
    # two where the first one's place is not free within the server's pause; else three to all
    assert sum(not c.hears_nothing(0.01) for c in idle) in (1, 2)


@contract("emfile", "survives", "concurrency")
def test_more_pending_connections_at_once_than_places(start: Start) -> None:
    """Out of the queue before it has a place, a connection without one would be closed."""
    places = 600
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 2 * places:
        pytest.skip(f"{2 * places} descriptors are needed (ulimit -n)")
    server = start(wrapper=["/usr/bin/prlimit", f"--nofile={places}"], backlog=2 * places)
    for _ in range(2):
        with server.held():
            clients = server.crowd(places + 100, LAST)
        for c in clients:
            reply = c.read_reply()
            assert reply.status == 503 or reply.body == HELLO
            c.expect_end()
        assert server.settles()
    assert "cancel" not in server.stderr()  # its own, near the end of the table, is no error


@contract("stop-in-flight", "stop", "emfile")
def test_a_full_server_that_stops_finishes_its_replies(start: Start, docroot: Site) -> None:
    """Nobody has to leave for a client that will not be accepted, not even who reads slowly."""
    places, length = 12, 600_000
    server = start(wrapper=["/usr/bin/prlimit", f"--nofile={places}:40"])
    kept = server.crowd(places, receive_buffer=65536)
    assert wait_until(lambda: proc.direct_descriptors(server.pid) == places, server.patience.limit)
    subprocess.run(["/usr/bin/prlimit", "--pid", str(server.serving()[0]), "--nofile=40:"], check=True)
    for c in kept:
        c.send(request("/big.bin", f"Range: bytes=0-{length - 1}"))
        assert c.read_head().status == 206
    time.sleep(1.2)  # so long a reply has to be held up before its client may have to leave (FULL_STEP_MS)
    server.signal(signal.SIGTERM)
    content = (docroot.root / "big.bin").read_bytes()[:length]
    for c in kept:
        assert c.read_exactly(length) == content
        c.expect_gone()
    assert server.wait() == 0


@contract("signals", "survives", "leaks")
@pytest.mark.parametrize("error", ["EINTR", "EAGAIN", "EBUSY", "ENOMEM", "EBADR"])
def test_a_wait_that_fails(traced: Traced, error: str) -> None:
    server, trace = traced("io_uring_enter", inject=f"io_uring_enter:error={error}:when=2+2")
    for _ in range(3):
        assert server.serves()
        assert len(server.get("/medium.bin").body) == 300_007
    assert trace.saw(error, server.patience.limit)
    said = server.stderr().count("io_uring_enter: ")
    assert said == 1 if error == "EBADR" else said <= (error != "EINTR")


@contract("survives", "accept-errors", "emfile")
@pytest.mark.parametrize("call", ["accept", "poll_add"])
def test_an_accept_whose_completion_is_lost(traced: Traced, call: str) -> None:
    """Or, with a full table, that of the poll for a pending connection: nothing else would wake the server for a new
    client.
    """
    places = 12 if call == "poll_add" else 0
    wrapper = ["/usr/bin/prlimit", f"--nofile={places}:40"] if places > 0 else []
    server, _ = traced(call, inject=f"{call}:error=EBADR:when=1", operations=True, wrapper=wrapper)
    for c in [server.connect() for _ in range(places)]:
        assert c.ask(ASK).body == HELLO
    time.sleep(0.3)  # until then they are not idle
    with server.connect() as guest:
        assert guest.ask(LAST).body == HELLO
    assert server.stderr().count("io_uring_enter: Invalid request descriptor") == 1


@contract("survives", "emfile")
def test_nobody_leaves_a_full_table_for_a_lost_completion(traced: Traced, tmp_path: Path) -> None:
    """The poll for a pending connection is cancelled then, and ends, though no connection is pending."""
    places, switch = 12, tmp_path / "switch"
    server, _ = traced(
        "read",
        inject="read:error=EBADR:when=1",
        operations=True,
        wrapper=["/usr/bin/prlimit", f"--nofile={places}:40"],
        env={"FAIL_SWITCH": str(switch)},
    )
    kept = [server.connect() for _ in range(places)]
    for c in kept:
        assert c.ask(ASK).body == HELLO
    time.sleep(0.3)  # until then they are not idle
    switch.touch()
    assert kept[0].ask(ASK).status == 200  # its file is not read, and the reply is sent all the same
    said = "io_uring_enter: Invalid request descriptor"
    assert wait_until(lambda: said in server.stderr(), server.patience.limit)
    assert all(c.hears_nothing(0.05) for c in kept)


@contract("signals", "setup-failure")
def test_a_wait_that_is_interrupted_before_it_listens(start: Start, traced: Traced) -> None:
    """A signal is no fault of the kernel, and no reason to say that this server cannot run here."""
    start()  # where that is so this test is skipped; from here on to be skipped is to fail
    try:
        server, trace = traced("io_uring_enter", inject="io_uring_enter:error=EINTR:when=1")
    except pytest.skip.Exception as error:
        pytest.fail(str(error))
    assert server.serves()
    assert trace.saw("EINTR", server.patience.limit)


@contract("survives", "leaks", "emfile")
@pytest.mark.parametrize(
    ("call", "error", "when", "status"),
    [
        *(("recvfrom", "ENOBUFS", "1..3", 200), ("recvfrom", "ECONNRESET", "1..1", 0)),
        *(("openat2", "EINTR", "1..3", 200), ("openat2", "EAGAIN", "1..3", 200)),
        *(("openat2", "EAGAIN", "1..40", 503), ("openat2", "EMFILE", "1..1", 503)),
        *(("openat2", "EACCES", "1..1", 403), ("statx", "EINTR", "1..3", 200)),
        *(("statx", "ENOMEM", "1..1", 503), ("read", "EAGAIN", "1..1", 200)),
        *(("read", "EIO", "1..1", 500), ("sendto", "EAGAIN", "1..2", 200)),
        *(("sendto", "EPIPE", "1..1", 0), ("shutdown", "ENOTCONN", "1..1", 405)),
    ],
)
def test_an_operation_that_fails(traced: Traced, call: str, error: str, when: str, status: int) -> None:
    """What can be tried again is; what cannot is told; 0: it ends the connection."""
    server, trace = traced(call, inject=f"{call}:error={error}:when={when}", operations=True)
    with server.connect() as c:
        if status == 405:
            assert c.ask(request("/", "Content-Length: 9", method="POST")).status == 405
        elif status > 0:
            reply = c.ask()
            assert reply.status == status
            assert reply.status != 200 or reply.body == HELLO
        else:
            c.send(ASK)
        if status in (0, 405):
            c.expect_gone()
    assert trace.saw(error, server.patience.limit)
    assert wait_until(server.serves, server.patience.limit)  # the fault may come to it, too


@contract("survives", "keep-alive")
def test_receives_that_find_no_buffer_now_and_then(traced: Traced) -> None:
    """Only those in a row are counted: however many there are, the connection lives."""
    server, _ = traced("recvfrom", inject="recvfrom:error=ENOBUFS:when=1+2", operations=True)
    with server.connect() as c:
        for _ in range(100):
            assert c.ask().body == HELLO


@contract("survives", "leaks")
def test_a_receive_that_never_finds_a_buffer(traced: Traced) -> None:
    """It is submitted again as often as others may be before it, which are none here: not thousands of times."""
    server, trace = traced("recvfrom", inject="recvfrom:error=ENOBUFS:when=1+1", operations=True)
    with server.connect() as c:
        c.send(ASK)
        c.expect_gone()
    tries = sum(result == "ENOBUFS" for _, _, result in trace.calls())
    assert 3 < tries <= 100


@contract("idle-time-out", "leaks", "signals")
def test_clients_that_leave_while_the_kernel_works_for_them(start: Start) -> None:
    """At every moment of a request some operation names the connection, and may yet write to it."""
    server = start("-t", "1")

    def come_and_go(pause: float) -> None:
        with Connection(server.address, server.patience.limit) as c:
            c.send(request("/medium.bin") + ASK)
            time.sleep(pause)
            c.reset()

    pauses = (0, 0.0001, 0.0003, 0.001)
    with meanwhile(*(functools.partial(come_and_go, pause) for pause in pauses)):
        time.sleep(5 * server.patience.silence)
    assert server.serves()
    assert server.settles()


NO_SUCH_RINGS = "the kernel is older than Linux 6.1, or io_uring is forbidden here"


def kernel_has_such_rings() -> bool:
    """Asked for as ring_set_up() does, by linux/io_uring.h."""
    cqsize, submit_all, single_issuer, defer_taskrun = 1 << 3, 1 << 7, 1 << 12, 1 << 13
    params = (ctypes.c_uint32 * 30)()
    params[1], params[2] = 512, cqsize | submit_all | single_issuer | defer_taskrun
    fd: int = ctypes.CDLL(None).syscall(425, 256, params)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


@contract("setup-failure")
@pytest.mark.parametrize(
    ("what", "call", "number", "errors"),
    [
        ("Linux 6.1", "io_uring_setup", 1, ("ENOSYS", "EINVAL")),
        ("seccomp", "io_uring_setup", 1, ("EPERM", "ENOSYS")),
        ("ulimit -l", "io_uring_setup", 1, ("ENOMEM",)),
        ("FILES2", "io_uring_register", 1, ("EINVAL", "EPERM")),
        ("IOWQ_MAX_WORKERS", "io_uring_register", 2, ("EINVAL", "EPERM")),
        ("PBUF_RING", "io_uring_register", 3, ("EINVAL", "EPERM")),
    ],
)
def test_no_ring_or_half_of_one(
    target: Target,
    run: Run,
    docroot: Site,
    tmp_path: Path,
    what: str,
    call: str,
    number: int,
    errors: tuple[str, ...],
) -> None:
    """What later kernels brought, and what filters forbid. Each operation is older than the flags
    of io_uring_setup that the server needs.
    """
    if call == "io_uring_register" and not kernel_has_such_rings():
        pytest.skip(NO_SUCH_RINGS)
    for error in errors:
        every = "+" if call == "io_uring_setup" else ""  # liburing 2.9 tries with less
        inject = f"{call}:error={error}:when={number}{every}"
        trace = tracing.Trace(tmp_path / f"trace-{error}", call, inject=inject)
        done = run(*trace.wrapper(), target.binary, "-p", "0", docroot.root, env=trace.env)
        said = complaint(done, EXIT_UNSUPPORTED, target.binary.name)
        assert said.startswith("io_uring") and what in said


@contract("setup-failure")
def test_a_limit_is_no_lack_of_the_kernel(target: Target, run: Run, docroot: Site, tmp_path: Path) -> None:
    """EMFILE ends it with 1, as from any other call, and not with 77, for which tests are skipped."""
    if not kernel_has_such_rings():
        pytest.skip(NO_SUCH_RINGS)
    for call in ("io_uring_setup", "io_uring_register"):
        trace = tracing.Trace(tmp_path / call, call, inject=f"{call}:error=EMFILE:when=1+")
        done = run(*trace.wrapper(), target.binary, "-p", "0", docroot.root, env=trace.env)
        assert complaint(done, 1, target.binary.name).endswith(": Too many open files")


@contract("setup-failure", "listening-line")
def test_it_does_not_say_that_a_kernel_lacks_what_it_has(start: Start) -> None:
    """If it said so, nearly all tests of this file would be skipped, and no test would fail."""
    if not kernel_has_such_rings():
        pytest.skip(NO_SUCH_RINGS)
    try:
        start()
    except pytest.skip.Exception as error:
        pytest.fail(str(error))


@contract("memory", "survives")
def test_idle_connections_own_no_buffer(start: Start) -> None:
    """The second four hundred, after one request each, cost less than a page apiece."""
    server, clients = start(backlog=MANY), 400
    if server.target.variant in SANITIZED:
        pytest.skip("a sanitizer's memory is not the server's")

    def come() -> list[Connection]:
        found = server.crowd(clients)
        for c in found:
            assert c.ask().body == HELLO
        return found

    kept = come()
    before = proc.anonymous_kib(server.pid)
    kept += come()
    assert proc.anonymous_kib(server.pid) - before <= clients
