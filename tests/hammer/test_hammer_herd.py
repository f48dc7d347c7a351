"""The herd: idle keep-alive connections in processes of their own, there before the load begins."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hammer_support import (
    HANG_S,
    OK,
    OK_CLOSE,
    Peer,
    Script,
    Server,
    binary,
    keep_alive,
    measure,
    measure_until,
    one_reply,
    run,
)
from test_hammer_crowd import hold, report

WINDOW = 129  # connections that one process opens at once (benchmarks/load/herd.c)


@contextmanager
def holding(server: Server, *args: str) -> Iterator[subprocess.Popen[str]]:
    """hammer with a herd and no load, once all of it is there."""
    command = [str(binary()), "--herd", "5", *args, server.url()]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "hammer: holding 5 connections\n"
        yield process


def children_of(process: subprocess.Popen[str]) -> list[int]:
    path = Path("/proc", str(process.pid), "task", str(process.pid), "children")
    return [int(word) for word in path.read_text(encoding="ascii").split()]


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + HANG_S
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.005)


def is_running(pid: int) -> bool:
    """A zombie holds no connection, and an orphan's may stay for want of somebody to reap it."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return not stat.rpartition(")")[2].lstrip().startswith("Z")


def test_it_asks_once_and_is_held() -> None:
    with Server(keep_alive) as server:
        result = measure("-n", "3", "--herd", "20", server.url())
        closing = [b"Connection: close" in head for head in server.heads]
    assert closing == [False] * 20 + [True] * 3, "first the herd with keep-alive, then the load"
    assert report(result, "herd") == {"wanted": 20, "established": 20, "served": 20, "held": 20}
    assert result["good"] == result["total"]["count"] == 3, "the herd is not measured"
    assert server.connections == 23


def test_more_than_one_process_may_have_descriptors_for() -> None:
    """With 40 descriptors 24 connections are left for each; an address of its own for each."""
    sources: list[str] = []

    def script(peer: Peer) -> None:
        sources.append(peer.socket.getpeername()[0])
        keep_alive(peer)

    with Server(script) as server:
        done = subprocess.run(
            [str(binary()), "--json", "-k", "-n", "2", "--herd", "100", server.url()],
            capture_output=True,
            timeout=HANG_S,
            check=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)),
        )
    assert report(json.loads(done.stdout), "herd")["held"] == 100
    assert {name: sources.count(name) for name in set(sources)} == {
        "127.0.0.1": 1,
        **{f"127.1.0.{i}": 20 for i in range(1, 6)},
    }


def test_it_comes_from_the_sources_that_are_given() -> None:
    sources: list[str] = []

    def script(peer: Peer) -> None:
        sources.append(peer.socket.getpeername()[0])
        keep_alive(peer)

    with Server(script) as server:
        measure("-k", "-n", "1", "--herd", "6", "--source", "127.0.0.7-127.0.0.8", server.url())
    assert sorted(sources[:6]) == ["127.0.0.7"] * 3 + ["127.0.0.8"] * 3


def test_urls_are_taken_in_turn() -> None:
    with (
        Server(keep_alive) as first,
        Server(keep_alive) as second,
        holding(second, first.url()) as process,
    ):
        assert (first.connections, second.connections) == (3, 2)
        process.terminate()


def test_only_a_window_is_on_its_way_at_once() -> None:
    answers = threading.Event()

    def script(peer: Peer) -> None:
        answers.wait(HANG_S)
        keep_alive(peer)

    def enough() -> bool:
        if not answers.is_set() and server.connections >= WINDOW:
            time.sleep(0.1)  # for those that must not come
            waiting.append(server.connections)
            answers.set()
        return len(server.heads) >= 301

    waiting: list[int] = []
    with Server(script) as server:
        result = measure_until(server, enough, "-k", "--herd", "300")
    assert waiting == [WINDOW]
    assert report(result, "herd")["held"] == 300


def test_what_is_dropped_under_the_load_is_not_held() -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(OK)
        if peer.number > 10:
            keep_alive(peer)
        elif peer.number > 2:
            peer.wait_for_end()
        else:
            load_is_there.wait(HANG_S)
            peer.socket.close()
            closed.append(peer.number)

    def enough() -> bool:
        if server.connections > 10:
            load_is_there.set()
        return len(closed) == 2

    load_is_there = threading.Event()
    closed: list[int] = []
    with Server(script) as server:
        result = measure_until(server, enough, "-k", "--herd", "10")
    found = report(result, "herd")
    assert found == {"wanted": 10, "established": 10, "served": 10, "dropped": 2, "held": 8}


NOT_KEPT = "had a reply that is not 2xx with keep-alive"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (one_reply(OK_CLOSE), NOT_KEPT),
        (one_reply(b"HTTP/1.1 200 OK\r\n\r\nto the end"), NOT_KEPT),
        (one_reply(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), NOT_KEPT),
        (one_reply(b"SSH-2.0-OpenSSH_9.2\r\n"), NOT_KEPT),
        (one_reply(OK + b"surplus"), NOT_KEPT),
        (hold, "had no reply in time"),
        (one_reply(b""), "was closed by the server before it had a reply"),
    ],
)
def test_a_herd_that_cannot_be_had_is_one_line(script: Script, why: str) -> None:
    with Server(script) as server:
        patience = "0.3" if script is hold else "60"
        result = run("-n", "1", "--herd", "1", "-t", patience, server.url())
    assert (result.status, result.out) == (1, "")
    assert result.err == f"hammer: herd: 0 of 1 connections, the next {why}\n"
    assert server.connections == 1, "no load without the herd"


def test_an_incomplete_herd_says_how_much_of_it_was_there() -> None:
    def four_are_kept(peer: Peer) -> None:
        (keep_alive if peer.number <= 4 else hold)(peer)

    with Server(four_are_kept) as server:
        result = run("--herd", "5", "-t", "1", server.url())
    assert result.status == 1
    assert result.err == "hammer: herd: 4 of 5 connections, the next had no reply in time\n"


def test_refused() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        result = run("-n", "3", "--herd", "2", f"http://127.0.0.1:{closed.getsockname()[1]}/")
    assert (result.status, result.out) == (1, "")
    assert result.err == (
        "hammer: herd: 0 of 2 connections, the next could not be opened: Connection refused\n"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_without_a_load_it_is_held_until_a_signal(number: int) -> None:
    """To the whole group, as by Ctrl-C: the processes of the herd leave it to hammer."""
    with Server(keep_alive) as server, holding(server, "--json") as process:
        herders = children_of(process)
        os.killpg(process.pid, number)
        out, err = process.communicate(timeout=HANG_S)
        assert (process.returncode, err) == (0, "")
        assert report(json.loads(out), "herd")["held"] == 5
        assert herders
        assert not any(is_running(pid) for pid in herders), "they end before hammer does"
        assert len(server.heads) == 5


def test_without_a_load_what_is_dropped_is_an_error() -> None:
    def script(peer: Peer) -> None:
        if peer.number < 5:
            keep_alive(peer)
        else:
            peer.request()
            peer.send(OK)
            peer.socket.close()
            closed.set()

    closed = threading.Event()
    with Server(script) as server, holding(server) as process:
        assert closed.wait(HANG_S)
        process.terminate()
        out, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 1
    assert "herd: 5 wanted, 5 established, 4 held at the end; 5 served" in out
    assert err == "hammer: herd: 4 of 5 connections at the end\n"


def test_it_ends_with_hammer_that_is_killed() -> None:
    with Server(keep_alive) as server, holding(server) as process:
        herders = children_of(process)
        assert herders
        process.kill()
        wait_until_gone(herders)


def test_a_process_of_it_that_dies_is_one_line() -> None:
    with Server(keep_alive) as server, holding(server) as process:
        herders = children_of(process)
        os.kill(herders[0], signal.SIGKILL)
        wait_until_gone(herders)
        process.terminate()
        _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 1
    assert err == "hammer: herd: 1 of its processes died\n"
