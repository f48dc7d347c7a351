"""11-sendfile sends in many ways, 12-aio waits for the disk in many ways, and all of them send the
same bytes. What differs is seen in a trace and in the packets; and in 12-aio nobody else waits,
whatever becomes of the disk, the file and the client meanwhile.
"""

import itertools
import os
import re
import resource
import signal
import time

import pytest

from tests.conformance import proc, tracing
from tests.conformance.matrix import SANITIZED, contract, kind
from tests.conformance.process import STOP_GRACE, Server, Target, limited, wait_until
from tests.conformance.programs import Start, Traced
from tests.conformance.site import (
    HELLO,
    SPARSE_END,
    SPARSE_SIZE,
    Site,
    bigger_than_socket_buffers,
    noise,
)
from tests.conformance.wire import ASK, request

pytestmark = kind("model")
SENDFILE = ("11-sendfile",)
AIO = ("12-aio",)
BOTH = (*SENDFILE, *AIO)

HEAD_CALLS = {
    "two": {"setsockopt", "sendto"},
    "nodelay": {"sendto"},
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
#: those whose bytes pass through the memory of the program
COPYING = ("read", "mmap", "posix", "threads", "linux", "writev")
PAIRS = [
    (head, body) for head, body in itertools.product(HEAD_CALLS, BODY_CALLS) if head != "writev" or body in COPYING
]

BY_THREADS = ("posix", "threads")
#: and how each gets at a file that is not in memory: by which calls of the loop, which of others
BACKENDS: dict[str, tuple[set[str], set[str]]] = {
    "writev": ({"mmap"}, set()),
    "sendfile": ({"sendfile"}, set()),
    "posix": ({"preadv2"}, {"pread64"}),
    "threads": ({"preadv2"}, {"pread64"}),
    "linux": ({"preadv2"}, set()),  # what is submitted is no call on the file
    "threads-sendfile": ({"preadv2"}, {"sendfile"}),
    "readahead": ({"preadv2", "sendfile"}, {"pread64", "readahead"}),
}
COLD = "preadv2:error=EAGAIN"  #: says the kernel of what is not in its memory
DELAY = 0.3  #: seconds of a disk that is slow


def backends(target: Target, *names: str) -> list[str]:
    """`posix` has the C library start threads, which ThreadSanitizer does not survive."""
    found = [n for n in names or tuple(BACKENDS) if target.variant != "tsan" or n != "posix"]
    return found or pytest.skip("not under this sanitizer")


def ways(target: Target) -> list[tuple[str, str, str]]:
    """The options for each way to send a file, and its name."""
    if target.name == "11-sendfile":
        return [("-s", f"{head}+{body}", body) for head, body in PAIRS]
    return [("-d", backend, backend) for backend in backends(target)]


@contract("any-length", "range", "head", "pipelining", "concurrency", servers=BOTH)
@pytest.mark.parametrize("readers", ["1", "3"])
def test_the_same_bytes(target: Target, start: Start, readers: str) -> None:
    """Also of more clients than readers: the queue is full, who comes later is read for later."""
    if target.name == "11-sendfile" and readers != "1":
        pytest.skip("has no readers")
    near_end = SPARSE_SIZE - len(SPARSE_END) - 5
    medium = noise(300_007)
    expected = {
        request("/hello.txt"): HELLO,
        request("/medium.bin"): medium,
        request("/empty.txt"): b"",
        request("/medium.bin", method="HEAD"): None,
        request("/medium.bin", "Range: bytes=65535-200000"): medium[65535:200001],
        request("/no-such.txt"): None,
        request("/sparse.bin", f"Range: bytes={near_end}-"): bytes(5) + SPARSE_END,
        request("/one.bin"): b"\0",
    }
    for *options, _ in ways(target):
        more = ("-r", readers) if target.name == "12-aio" else ()
        server = start(*options, *more)
        clients = server.crowd(40 if more else 0, request("/medium.bin"))
        for c in clients:
            assert c.read_reply().body == medium, options
        with server.connect() as c:
            c.send(b"".join(expected))
            for data, body in expected.items():
                reply = c.read_reply("HEAD" if data.startswith(b"HEAD") else "GET")
                assert body is None or reply.body == body, (options, data)


@contract("any-length", "concurrency", servers=BOTH)
def test_what_the_socket_does_not_take_at_once(target: Target, start: Start) -> None:
    """Several at the same time, each in pieces, none with the bytes of another."""
    whole = noise(bigger_than_socket_buffers())
    for *options, _ in ways(target):
        server = start(*options)
        slow = server.crowd(3, receive_buffer=65536)
        for number, c in enumerate(slow):
            c.send(request("/big.bin", f"Range: bytes={number * 1000}-"))
            c.read_head()
        assert server.serves(), options
        pieces = [c.read_exactly(200_001 + number) for number, c in enumerate(slow)]
        for number in (2, 0, 1):  # one of them to its end
            begin, end = number * 1000, len(whole) if number == 0 else 4 << 20
            rest = slow[number].read_exactly(end - begin - len(pieces[number]))
            assert pieces[number] + rest == whole[begin:end], options


@contract("file-changes", "survives", "leaks", servers=BOTH)
@pytest.mark.parametrize("left", [0, 4097, 100_000])
def test_a_file_that_shrinks(target: Target, start: Start, own_site: Site, left: int) -> None:
    """A mapping must neither kill the server nor send the zeros of its last page. In the packets of
    sendfile() and splice(), which queue the pages of the file, the zeros may be.
    """
    size = bigger_than_socket_buffers()
    for *options, body in ways(target):
        path = own_site.write("file.bin", b"x" * size)
        server = start(*options, root=own_site.root)
        c = server.connect(receive_buffer=65536)
        c.send(request("/file.bin"))
        c.read_head()
        # A read() that is under way may find the pages cut and still the old size: it gives zeros.
        assert server.rests()
        os.truncate(path, left)
        received = c.read_all()
        assert len(received) < size, options
        assert body not in COPYING or b"\0" not in received, options
        assert server.serves(), options


@contract("survives", "leaks", "any-length", servers=BOTH)
def test_who_leaves_in_the_middle_leaves_nothing_to_the_next(target: Target, start: Start) -> None:
    """No byte that was read for him, and no part of the file in the memory of the server."""
    for *options, body in ways(target):
        if options[-1] not in (body, f"more+{body}"):
            continue
        server = start(*options)
        with server.download(window=65536) as c:
            c.read_exactly(1 << 20)
        assert server.settles(), options
        assert server.get("/medium.bin").body == noise(300_007), options
        assert server.settles(), options
        assert "big.bin" not in proc.text(server.pid, "maps"), options


@contract("emfile", "any-length", servers=SENDFILE)
def test_no_descriptor_for_a_pipe(start: Start) -> None:
    """One for the client and one for the file are left: sendfile() needs no more."""
    server = start("-s", "more+splice")
    with server.download():  # has the pipe that was there from the start
        used = proc.descriptors(server.pid)
        (_, second, *_) = [fd for fd in range(len(used) + 2) if fd not in used]
        with limited(server, "nofile", second + 1):
            assert server.get("/medium.bin").body == noise(300_007)


@contract("mechanism", servers=SENDFILE)
def test_head_and_body_share_a_packet(start: Start) -> None:
    """The least of several counts: TCP may send twice when an acknowledgement is late."""
    for head, body in PAIRS:
        packets = []
        with start("-s", f"{head}+{body}").connect() as c:
            for _ in range(5):
                before = c.data_packets()
                assert c.ask().body == HELLO
                packets.append(c.data_packets() - before)
        assert min(packets) == (2 if head in ("two", "nodelay") else 1), (head, body)


def calls_for_the_client(trace: tracing.Trace) -> list[str]:
    """From its accept() to the third close(): two files and the connection. Else nothing yet."""
    accepts = ("accept", "accept4")
    names = [n for _, n, result in trace.calls() if n not in accepts or result.isdigit()]
    first = next((i for i, name in enumerate(names) if name in accepts), None)
    names = names[first + 1 :] if first is not None else []
    return names if names.count("close") >= 3 else []


@contract("mechanism", servers=SENDFILE)
def test_the_calls_of_a_way(traced: Traced) -> None:
    calls = sorted({"accept", "accept4", "close"}.union(*HEAD_CALLS.values(), *BODY_CALLS.values()))
    for head, body in PAIRS:
        server, trace = traced(",".join(calls), "-s", f"{head}+{body}")
        with server.connect() as c:
            c.send(request("/medium.bin") + ASK)
            assert len(c.read_reply().body) == 300_007
            assert c.read_reply().body == HELLO
        assert trace.has(lambda _, t=trace: bool(calls_for_the_client(t)), server.patience.limit)  # type: ignore[misc]
        used = set(calls_for_the_client(trace)) - {"accept", "accept4", "close"}
        expected = HEAD_CALLS[head] | BODY_CALLS[body]
        if body != "mmap":
            used -= {"mmap", "munmap"}  # they may be malloc()'s
        if head == "writev":  # the whole of a small file, the first piece of a large one
            used -= {"sendto"}
            expected -= {"sendto"}
        assert used == expected, (head, body)
        lines = trace.completed()
        corks = re.findall(r"TCP_CORK, \[([01])\]", "\n".join(lines))
        assert corks == (["1", "0"] * 2 if head == "cork" else []), (head, body)  # else the last packet waits
        splices = [line for line in lines if " splice(" in line]
        assert not any("SPLICE_F_MORE" in line for line in splices[-1:]), (head, body)


@contract("mechanism", servers=AIO)
def test_the_calls_of_a_backend(target: Target, traced: Traced, own_site: Site) -> None:
    """And if the file is in memory nobody but the loop reads."""
    path = own_site.write("file.bin", noise(100_000))
    none: list[str] = []
    rows: list[tuple[str, list[str], set[str] | None, set[str]]]
    rows = [(name, [COLD], *BACKENDS[name]) for name in backends(target)]
    rows += [(name, none, None, set()) for name in backends(target)]
    for name, inject, by_loop, by_others in rows:
        server, trace = traced(
            "mmap,preadv2,pread64,sendfile,readahead",
            *("-d", name),
            inject=inject,
            path=path,
            root=own_site.root,
        )
        assert server.get("/file.bin").body == noise(100_000), name
        assert server.settles()
        least = len(by_others) + (1 if by_loop is None else len(by_loop))
        limit = server.patience.limit
        assert trace.has(lambda calls, least=least: len(calls) >= least, limit), name  # type: ignore[misc]
        own = {call for pid, call, _ in trace.calls() if pid == server.pid}
        assert own == by_loop if by_loop is not None else own, name
        assert {call for pid, call, _ in trace.calls() if pid != server.pid} == by_others, name


@contract("memory", "concurrency", servers=AIO)
def test_what_is_kept_for_those_who_do_not_read(server: Server) -> None:
    """At most 64 KiB each, all told; whole pieces are 256 KiB. The first crowd also fills what is
    kept for the next replies.
    """
    if server.target.variant in SANITIZED:
        pytest.skip("what is freed stays with the sanitizer")

    def more_readers(readers: int) -> None:
        for c in server.crowd(readers, request("/big.bin")):
            assert c.read_head().status == 200

    more_readers(64)
    time.sleep(server.patience.silence)
    most = proc.anonymous_kib(server.pid) + 64 * 128
    more_readers(128)
    assert wait_until(lambda: proc.anonymous_kib(server.pid) <= most, server.patience.limit)


@contract("memory", servers=AIO)
def test_what_is_kept_for_replies_that_cannot_begin(traced: Traced) -> None:
    """The same where the socket has no room even for the head: it is full of the reply before."""
    server, trace = traced("sendto", "-t", "4", inject="sendto:error=EAGAIN")
    if server.target.variant in SANITIZED:
        pytest.skip("what is freed stays with the sanitizer")
    before = proc.anonymous_kib(server.pid)
    clients = server.crowd(128, request("/big.bin"))
    assert trace.has(lambda calls: len(calls) >= len(clients), server.patience.limit)
    time.sleep(server.patience.silence)
    assert proc.anonymous_kib(server.pid) < before + len(clients) * 128


@contract("memory", servers=AIO)
def test_the_stacks_of_readers_are_small(start: Start, target: Target) -> None:
    """Of a system's default size, thousands would not find room where memory is promised to all."""
    if target.variant in SANITIZED:
        pytest.skip("a sanitizer has a shadow of each")

    def pages(readers: str) -> int:
        return int(proc.text(start("-r", readers).pid, "statm").split()[0])

    assert pages("65") - pages("1") < 64 * (1 << 20) // resource.getpagesize()


@contract("concurrency", "pipelining", "mechanism", servers=AIO)
def test_the_loop_looks_up_however_much_is_over(traced: Traced) -> None:
    """With each job that is handed over another is over: the loop takes those of before."""
    server, trace = traced("epoll_wait,epoll_pwait,sendto")
    clients = server.crowd(4, ASK * 200)
    for c in clients:
        for _ in range(200):
            assert c.read_reply().body == HELLO
    turns = " ".join(trace.names()).replace("epoll_pwait", "epoll_wait").split("epoll_wait")
    most = max(turn.count("sendto") for turn in turns)
    assert 0 < most <= len(clients) * 2 * 16  # head and body, of as many requests as one may have


def slow_disk(traced: Traced, site: Site, size: int, backend: str) -> tuple[Server, tracing.Trace]:
    """Nothing of slow.bin is in memory, and every read of it takes a while: a disk that is busy."""
    path = site.write("slow.bin", noise(size))
    slow = [COLD, f"pread64,sendfile:delay_enter={int(DELAY * 1e6)}"]
    calls = "pread64,preadv2,sendfile"
    return traced(calls, "-d", backend, inject=slow, path=path, root=site.root)


@contract("any-length", "concurrency", servers=AIO)
def test_more_reads_than_may_be_under_way(target: Target, traced: Traced) -> None:
    """One at a time: who waits has his turn when the one before is over, however many there were."""
    for backend in backends(target, "threads", "posix", "linux", "threads-sendfile", "readahead"):
        server, _ = traced("preadv2", "-d", backend, "-r", "1", inject=COLD)
        for c in server.crowd(3, request("/medium.bin") * 2):
            for _ in range(2):
                assert c.read_reply().body == noise(300_007), backend


@contract("404", "survives", servers=AIO)
def test_a_reply_without_a_file_that_finds_no_room(traced: Traced) -> None:
    """It has no piece that could be kept. (The request behind it is the event that says: try again.)"""
    server, trace = traced("sendto", inject="sendto:error=EAGAIN:when=1")
    with server.connect() as c:
        c.send(request("/no-such.txt"))
        assert trace.saw("EAGAIN", server.patience.limit)
        assert c.ask().status == 404
        assert c.read_reply().body == HELLO


@contract("survives", "concurrency", servers=AIO)
def test_what_a_thread_says_of_the_socket_may_be_old(traced: Traced) -> None:
    """A thread found it full. If an event has come since then, no other will, and the thread tries again; if none has,
    it does not.
    """
    inject = [COLD, "sendfile:error=EAGAIN:delay_exit=300000:when=1"]
    server, trace = traced("preadv2,sendfile", "-d", "threads-sendfile", "-r", "1", inject=inject)
    with server.connect() as c:
        c.send(request("/medium.bin"))
        assert trace.saw("EAGAIN", server.patience.limit)  # of preadv2(): now a thread has the socket
        assert c.ask().body == noise(300_007)
        assert c.read_reply().body == HELLO
    with server.download():
        assert server.rests()


@contract("concurrency", "mechanism", servers=AIO)
@pytest.mark.parametrize("backend", ["sendfile", *BY_THREADS, "threads-sendfile", "readahead"])
def test_nobody_waits_for_the_disk_of_another(target: Target, traced: Traced, own_site: Site, backend: str) -> None:
    """Five slow files take as long as one; with `sendfile`, which waits in the loop, five times."""
    backends(target, backend)
    server, trace = slow_disk(traced, own_site, 1000, backend)
    assert server.serves()
    clients = server.crowd(5)

    def took() -> tuple[float, float]:
        """Until somebody is served who needs nothing of that disk, and until the five are."""
        before, began = len(trace.lines()), time.monotonic()
        for c in clients:
            c.send(request("/slow.bin"))
        assert wait_until(lambda: len(trace.lines()) > before, server.patience.limit)
        assert server.serves()
        quick = time.monotonic() - began
        for c in clients:
            assert c.read_reply().body == noise(1000)
        return quick, time.monotonic() - began

    quick, slow = took()
    if backend == "sendfile":
        assert slow > 4 * DELAY
    elif backend in ("threads", "threads-sendfile"):
        for _ in range(4):  # beside others the threads may run one after the other, and once more they may not
            if quick < DELAY and slow < 4 * DELAY:
                break
            quick, slow = took()
        assert quick < DELAY and slow < 4 * DELAY


@contract("survives", "leaks", "concurrency", servers=AIO)
@pytest.mark.parametrize("backend", ["threads", "posix", "threads-sendfile", "readahead"])
def test_a_client_that_leaves_during_a_read(target: Target, traced: Traced, own_site: Site, backend: str) -> None:
    backends(target, backend)
    server, _ = slow_disk(traced, own_site, 100_000, backend)
    for how in ("close", "reset", "close", "reset"):
        c = server.connect()
        c.send(request("/slow.bin"))
        time.sleep(DELAY / 3)
        c.reset() if how == "reset" else c.close()
        assert server.serves()
    assert server.settles()


@contract("file-changes", "survives", "500", servers=AIO)
def test_a_disk_that_fails_before_the_head_is_out(target: Target, traced: Traced, docroot: Site) -> None:
    """Then the client can still be told."""
    calls = "pread64,preadv2,readahead"
    path = docroot.root / "medium.bin"
    for backend in backends(target, "threads", "posix", "readahead"):
        server, _ = traced(calls, "-d", backend, "-v", inject=f"{calls}:error=EIO", path=path)
        assert server.get("/medium.bin").status == 500, backend
        assert '12-aio: "" 500 ' in server.stderr(), backend
        assert server.serves(), backend


@contract("any-length", servers=AIO)
def test_reads_that_bring_less_than_they_should(start: Start, target: Target) -> None:
    for more in ({}, {"NOT_CACHED": "1"}):
        server = start(env=tracing.preload(target, SHORT_READS="10000", **more))
        assert server.get("/medium.bin").body == noise(300_007)
        part = server.get("/medium.bin", "Range: bytes=9000-50000")
        assert part.body == noise(300_007)[9000:50001]


@contract("mechanism", servers=AIO)
def test_noatime(traced: Traced) -> None:
    for options, asked in ((("-n",), True), ((), False)):
        server, trace = traced("fcntl,close", *options)
        assert server.serves()
        assert trace.has(lambda calls: len(calls) > 3, server.patience.limit)
        assert server.settles()
        assert any("O_NOATIME" in line for line in trace.lines()) is asked


@contract("get", "403", "404", "outside", "leaks", servers=AIO)
@pytest.mark.parametrize("who", ["0", "1", "4", "unix", "tcp"])
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


@contract("survives", "concurrency", "stop", servers=AIO)
@pytest.mark.parametrize("who", ["unix", "tcp"])
def test_a_helper_that_dies_and_one_that_survives(start: Start, who: str) -> None:
    """With questions on all its lines, and more; and when the server ends, however, it does too,
    where it was started with its children ignored, as well: waitpid() knows of none then.
    """
    server = start("-m", who)
    assert server.serves()
    (helper,) = server.children()
    proc.stop(helper)
    clients = server.crowd(30, ASK)
    time.sleep(server.patience.silence)
    os.kill(helper, signal.SIGKILL)
    for c in clients:
        assert c.read_reply().body == HELLO
    assert server.serves()
    assert wait_until(lambda: "the helper is gone" in server.stderr(), server.patience.limit)
    ignoring = ["/usr/bin/env", "--ignore-signal=CHLD"]
    for signum, status in ((signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)):
        server = start("-m", who, wrapper=ignoring)
        assert server.serves()
        (helper,) = server.children()
        server.ends_with = status
        server.signal(signum)
        assert server.wait(STOP_GRACE / 2 * server.patience.factor) == status
        assert wait_until(lambda pid=helper: not proc.alive(pid), server.patience.limit)  # type: ignore[misc]


@contract("stop", "stop-in-flight", servers=AIO)
def test_a_helper_does_not_hear_ctrl_c(start: Start) -> None:
    """The reply in flight may need it yet; it ends with the server."""
    server = start("-m", "unix")
    assert server.serves()
    (helper,) = server.children()
    with server.download():
        server.signal_group(signal.SIGINT)
        assert wait_until(lambda: not server.listens(), server.patience.limit)
        assert server.rests() and proc.alive(helper)
    assert server.wait() == 0
    assert server.stderr() == ""
