"""Silent and slow clients do not keep others from being served.

The clients are served in the reverse order of their opening: otherwise a server that takes one
after the other passes, because the listen backlog holds the rest. 01-iterative and 05b-nonblocking
have to fail the tests of the line "concurrency" (matrix.py), and pytest reports that as `xfailed`.
"""

import os
import select
import shutil
import signal
import socket
import subprocess
import time
from typing import Any

import pytest

from tests.conformance import tracing
from tests.conformance.matrix import LISTENING, SANITIZED, contract, kind
from tests.conformance.process import Server, Target, wait_until
from tests.conformance.programs import TREE, Start
from tests.conformance.site import HELLO, Site
from tests.conformance.wire import LAST, Connection, NotServed, request

pytestmark = kind("model")
BACKLOG = 4
#: what a server that serves one after the other is given before it counts as failing; then the
#: test is over
SHORT = 1.0


def limit_for(server: Server) -> float:
    """Long where serving is expected, short where failing is."""
    if server.target.model.capacity == 1:
        return SHORT * server.patience.factor
    return server.patience.limit


def open_clients(server: Server, n: int, first: bytes) -> list[Connection]:
    clients = []
    for number in range(1, n + 1):
        clients.append(server.connect(limit=limit_for(server)))
        clients[-1].send(first)
        if number % BACKLOG == 0:
            time.sleep(0.01)  # who finds the queue full tries again a second later
    return clients


def serve_in_reverse(clients: list[Connection], rest: bytes) -> None:
    """Every client sends what its request lacks, the last one first, and gets its reply."""
    for c in reversed(clients):
        reply = c.ask(rest)
        assert (reply.status, reply.body) == (200, HELLO)
        c.close()


HAMMER = TREE / "build/bin/hammer"
#: One of each loop: that of 07 is 06's, that of 11 is 09's.
LOOPS = (
    *("06-select", "08-sigio", "09-epoll", "10-kqueue"),
    *("12-aio", "13-uring", "14-owfat", "15-slashdot", "16-coroutines"),
)


@contract("concurrency", "stop", servers=LOOPS)
@pytest.mark.long  # begun early: it leaves thousands of dead connections in the kernel's table
def test_somebody_is_heard_while_others_come_and_leave(start: Start) -> None:
    """However many come: a client who stays, and the signal to stop. The server is the slower side,
    so that there is always a next one pending: it is nice, and each flood is a session of its own.
    """
    if not shutil.which("taskset") or not HAMMER.exists():
        pytest.skip("it needs taskset, and hammer (make servers)")
    one = ["taskset", "-c", str(max(os.sched_getaffinity(0)))]
    server = start(wrapper=("nice", "-n", "15", *one))
    host, port = server.address
    command = [*one, str(HAMMER), "-c", "300", "-s", "30", f"http://{host}:{port}/hello.txt"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    floods = [subprocess.Popen(command, start_new_session=True, **quiet) for _ in range(3)]
    try:
        with server.connect() as c:
            begin = time.monotonic()
            while time.monotonic() < begin + 1.5:
                assert c.ask().body == HELLO
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert all(flood.poll() is None for flood in floods)
    finally:
        for flood in floods:
            flood.kill()
            flood.wait()


@contract("concurrency", of="serving")
def test_a_few_silent_clients(server: Server) -> None:
    for first in (b"", b"GET", LAST[:-1]):
        serve_in_reverse(open_clients(server, 3, first), LAST[len(first) :])


@contract("concurrency")
def test_more_silent_clients_than_the_backlog_holds(start: Start) -> None:
    server = start(backlog=BACKLOG)
    model = server.target.model
    n = min(5 * BACKLOG, model.capacity) if model.workers else 5 * BACKLOG
    for first in (LAST[:30], b""):
        serve_in_reverse(open_clients(server, n, first), LAST[len(first) :])


@contract("concurrency", "memory", "leaks")
def test_many_silent_clients(server: Server) -> None:
    """As many as the model says it can hold, up to a size that no shared machine notices."""
    model = server.target.model
    n = 16 if server.target.variant in SANITIZED else 100
    clients = open_clients(server, min(n, max(2, model.capacity)), b"")
    expected = len(clients) * model.processes_per_connection
    assert wait_until(lambda: len(server.children()) >= expected, server.patience.limit)
    serve_in_reverse(clients, LAST)
    assert server.settles()


@contract("concurrency", "keep-alive", of="serving")
def test_an_idle_connection_is_served_again_after_others(server: Server) -> None:
    with server.connect(limit=limit_for(server)) as idle:
        assert idle.ask().body == HELLO
        other = server.connect(limit=limit_for(server))
        assert other.ask(LAST).body == HELLO
        assert idle.ask().body == HELLO


@contract("concurrency", "any-length")
def test_downloads_side_by_side(server: Server, docroot: Site) -> None:
    """Who does not read keeps nobody waiting; and pieces read from each connection in turn are
    pieces of the same file.
    """
    content = (docroot.root / "big.bin").read_bytes()[: 8 << 20]
    ask = request("/big.bin", f"Range: bytes=0-{len(content) - 1}", "Connection: close")
    clients = server.crowd(4, ask, receive_buffer=65536, limit=limit_for(server))
    for c in reversed(clients):
        assert c.read_head().status == 206
    for at in range(0, len(content), 1 << 19):
        for c in clients:
            assert c.read_exactly(1 << 19) == content[at : at + (1 << 19)]


@contract("mechanism", "survives")
@pytest.mark.servers("01-iterative", "02-fork", "03-prefork", "04-threads", "05-pool")
def test_workers_bound_the_clients_in_service(start: Start) -> None:
    """-w: so many at most; client w+1 waits, and is served when one of the others has gone."""
    server = start("-w", "2")
    model, base = server.target.model, server.base
    number = min(2, model.capacity)
    clients = server.crowd(number, LAST[:-1])
    children = base.children + number * model.processes_per_connection
    assert wait_until(lambda: server.holdings().children == children, server.patience.limit)
    waiting = server.connect(limit=SHORT * server.patience.factor)
    waiting.send(LAST)
    with pytest.raises(NotServed):
        waiting.read_reply()
    found = server.holdings()
    assert found.children == children
    threads = base.threads + number * model.threads_per_connection
    assert 0 <= found.threads - threads <= server.target.spare_threads
    clients[0].close()
    waiting.limit = server.patience.limit
    assert waiting.read_reply().body == HELLO


@contract("concurrency", "mechanism", servers=("04-threads", "05-pool"))
def test_who_waits_for_room_is_woken_by_who_leaves(target: Target, start: Start) -> None:
    """The server looks for room once a second, too. Here that look comes much too late: it computes its time by a clock
    that is twenty times as fast as the kernel's, and the kernel waits until its own clock shows that time.
    """
    server = start("-w", "1", "-t", "600", env=tracing.preload(target, CLOCK_SPEED="20"))
    clients = server.crowd(2 if target.name == "05-pool" else 1, LAST[:-1])
    with server.connect() as waiting:
        waiting.send(LAST)
        assert waiting.hears_nothing(server.patience.silence)
        for c in clients:
            c.close()
        assert waiting.read_reply().body == HELLO


@contract("backlog", servers=LISTENING)
@pytest.mark.parametrize(("backlog", "few"), [(4, True), (64, False)])
def test_the_backlog(start: Start, backlog: int, few: bool) -> None:
    """While the server does not accept, the system does it for it: as many as -b, and one."""
    server = start(backlog=backlog)
    clients = [socket.socket() for _ in range(24)]
    with server.held():
        for client in clients:
            client.setblocking(False)
            client.connect_ex(server.address)
            # who says nothing is not yet in the queue of those to be accepted
            if server.target.model.defers and select.select([], [client], [], 0.05)[1]:
                client.send(LAST)
        time.sleep(server.patience.silence)
        connected = sum(bool(select.select([], [client], [], 0)[1]) for client in clients)
        for client in clients:
            client.close()
    assert connected <= backlog + 1 if few else connected == len(clients)
    assert connected >= min(backlog, len(clients))
    assert server.serves()
