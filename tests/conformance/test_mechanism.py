"""Each server works by the mechanism its chapter is about: seen in /proc, and in a system-call
trace.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from conformance import proc, tracing
from conformance.contract import contract
from conformance.process import Server, wait_until
from conformance.programs import Start
from conformance.servers import LISTENING


@contract("sigpipe")
def test_sigpipe_is_ignored(server: Server) -> None:
    """In the children too: sendfile() has no flag that says so call by call."""
    with server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\n")
        if server.target.model.processes_per_connection:
            assert wait_until(lambda: bool(server.children()), server.patience.limit)
        pids = server.children() if server.target.model.under_inetd else server.processes()
        # between exec and the call that ignores it there is a moment under inetd
        ignored = wait_until(
            lambda: all(proc.signal_is_ignored(pid, signal.SIGPIPE) for pid in pids),
            server.patience.limit,
        )
        assert ignored


@contract("mechanism")
def test_processes_and_threads_per_connection(server: Server) -> None:
    """Workers are there from the start, and do not become more."""
    model, base = server.target.model, server.base
    clients = [server.connect() for _ in range(3 if model.capacity > 1 else 1)]
    for c in clients:
        c.send(b"GET / HTTP/1.1\r\n")
    children = base.children + len(clients) * model.processes_per_connection
    threads = base.threads + len(clients) * model.threads_per_connection

    def enough() -> bool:
        found = server.holdings()
        return found.children >= children and found.threads >= threads

    assert wait_until(enough, server.patience.limit)
    time.sleep(server.patience.silence)  # for those that would be too many
    found = server.holdings()
    assert found.children == children
    assert 0 <= found.threads - threads <= server.target.spare_threads
    if model.workers:
        workers = found.threads - 1 if model.threaded else found.children
        assert 0 <= workers - model.workers <= server.target.spare_threads


@contract("mechanism", "leaks")
@pytest.mark.servers("02-fork")
def test_descriptors_of_parent_and_child(server: Server) -> None:
    """A listening socket left open in a child keeps the port; a client's left open in the parent is
    a leak.
    """
    listening = proc.listening_sockets(server.pid)
    assert len(listening) == 1
    with server.connect() as c:
        c.send(b"GET / HTTP/1.1\r\n")
        assert wait_until(
            lambda: len(server.children()) == 1 and len(proc.sockets(server.pid)) == 1,
            server.patience.limit,
        ), f"sockets of the parent: {proc.sockets(server.pid)}, children: {server.children()}"
        (child,) = server.children()
        assert wait_until(
            lambda: not proc.sockets(child) & listening and len(proc.sockets(child)) == 1,
            server.patience.limit,
        ), f"sockets of the child: {proc.descriptors(child)}"
        assert proc.sockets(server.pid) == listening


@contract("mechanism")
@pytest.mark.servers(*LISTENING)
@pytest.mark.parametrize("requests", [1, 5])
def test_what_is_started_in_all(start: Start, tmp_path: Path, requests: int) -> None:
    """fork and pthread_create are the same call to the kernel; the trace counts both."""
    trace = tracing.Trace(tmp_path / "trace", f"{tracing.FORKS},accept,accept4,io_uring_enter")
    server = start(wrapper=trace.wrapper(), env=tracing.ENV)
    model = server.target.model
    for _ in range(requests):
        assert server.serves()

    def count(calls: list[tuple[int, str, str]], names: tuple[str, ...]) -> int:
        return sum(1 for pid, name, result in calls if name in names and result.isdigit())

    accepts, forks = ("accept", "accept4"), tuple(tracing.FORKS.split(","))

    def all_traced(calls: list[tuple[int, str, str]]) -> bool:
        if model.ring:  # it accepts by operations of the ring, which strace does not see
            return count(calls, ("io_uring_enter",)) >= requests and count(calls, accepts) == 0
        return count(calls, accepts) == requests

    assert trace.has(all_traced, server.patience.limit)
    each = model.forks_per_connection + model.threads_per_connection
    expected = model.workers * (1 + model.threads_of_worker) + requests * each
    # What was started may have answered before the tracer writes that its start has returned.
    assert trace.has(lambda calls: count(calls, forks) >= expected, server.patience.limit)
    assert count(trace.calls(), forks) - expected <= server.target.spare_starts(expected)
