"""A crowd without a load: held by processes of its own until a signal comes."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hammer_support import (
    HANG_S,
    OK_CLOSE,
    Peer,
    Server,
    binary,
    keep_alive,
    one_reply,
)
from test_hammer_crowd import hold, report
from test_hammer_herd import children_of, is_running, wait_until_gone


@contextmanager
def holding(
    url: str, *args: str, descriptors: int = 0
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """hammer with a crowd and no load, and its ready line."""

    def limit() -> None:
        if descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    with subprocess.Popen(
        [str(binary()), "--json", *args, url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=limit,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


def end(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What it tells when it is asked to end."""
    process.terminate()
    out, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, err) == (0, "")
    result = json.loads(out)
    assert isinstance(result, dict)
    return result


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_crowd_is_held_until_a_signal() -> None:
    """Of 20: 9 % slow are one, half are half-dead, and what is left is idle."""
    sent: dict[int, bytes] = {}

    def script(peer: Peer) -> None:
        sent[peer.number] = b""
        with contextlib.suppress(ConnectionResetError):  # so the crowd leaves
            while data := peer.socket.recv(65536):
                sent[peer.number] += data

    with (
        Server(script) as server,
        holding(
            server.url(), "--crowd", "20", "--slow", "9%", "--half-dead", "50%", "--drip", "600000"
        ) as (process, line),
    ):
        assert line == "hammer: holding 20 connections\n"
        herders = children_of(process)
        wait_for(lambda: len([data for data in sent.values() if data]) == 10)
        result = end(process)
        assert not any(is_running(pid) for pid in herders), "they end before hammer does"
    assert set(result) == {
        *("schema", "parameters", "settled_s", "crowd", "slow", "slow_read", "half_dead"),
        *("idle", "herd"),
    }
    assert report(result, "slow") == {"wanted": 1, "established": 1, "held": 1}
    assert report(result, "half_dead") == {"wanted": 10, "established": 10, "held": 10}
    assert report(result, "idle") == {"wanted": 9, "established": 9, "held": 9}
    assert report(result, "crowd") == {"wanted": 20, "established": 20, "held": 20}
    assert result["crowd"]["first_loss_s"] is None
    assert server.connections == 20, "none came twice"


def test_more_than_one_process_may_have_descriptors_for() -> None:
    """With 40 descriptors 24 connections are left for each; an address of its own for each."""
    sources: list[str] = []

    def script(peer: Peer) -> None:
        sources.append(peer.socket.getpeername()[0])
        hold(peer)

    with (
        Server(script) as server,
        holding(server.url(), "--idle", "90", "--half-dead", "10", descriptors=40) as (
            process,
            line,
        ),
    ):
        assert line == "hammer: holding 100 connections\n"
        wait_for(lambda: len(sources) == 100)
        assert report(end(process), "crowd")["held"] == 100
    assert {name: sources.count(name) for name in set(sources)} == {
        f"127.1.0.{i}": 20 for i in range(1, 6)
    }


def test_one_that_reads_slowly_asks_at_once() -> None:
    """And the server is stuck in its write."""
    stuck: list[int] = []
    body = b"x" * 4_000_000

    def send_much(peer: Peer) -> None:
        assert peer.request() is not None
        peer.socket.setblocking(False)
        stuck.append(peer.socket.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n" + body))
        peer.socket.setblocking(True)
        hold(peer)

    with (
        Server(send_much) as server,
        holding(server.url(), "--slow-read", "1", "--drip", "600000") as (process, line),
    ):
        assert line == "hammer: holding 1 connections\n"
        wait_for(lambda: len(stuck) == 1)
        found = report(end(process), "slow_read")
    assert stuck[0] < len(body)
    assert found == {"wanted": 1, "established": 1, "held": 1}


def test_the_ramp_is_kept() -> None:
    """Six of them at ten a second: the last comes half a second after the first, or later."""
    with (
        Server(hold) as server,
        holding(server.url(), "--idle", "6", "--ramp", "10") as (process, line),
    ):
        assert line == "hammer: holding 6 connections\n"
        result = end(process)
    assert result["settled_s"] >= 0.5


def test_the_ramp_is_that_of_all_processes() -> None:
    with (
        Server(hold) as server,
        holding(server.url(), "--idle", "40", "--ramp", "80", descriptors=24) as (process, _),
    ):
        result = end(process)
    assert result["settled_s"] >= 7 / 16, "five processes, eight each, 16 a second"


def test_what_is_refused_is_counted_and_is_no_error() -> None:
    with Server(one_reply(OK_CLOSE)) as gone:
        dead = gone.url()  # nobody listens there any more
    with holding(dead, "--idle", "4", "--drip", "600000") as (process, line):
        assert line == "hammer: holding 0 connections\n"
        result = end(process)
    assert report(result, "crowd") == {"wanted": 4, "refused": 4}
    assert 0 < result["crowd"]["first_loss_s"] <= result["crowd"]["last_loss_s"]


@pytest.mark.parametrize("reset", [False, True])
def test_what_the_server_ends_is_counted_with_how(reset: bool) -> None:
    ended = threading.Event()

    def script(peer: Peer) -> None:
        if peer.number > 1:
            hold(peer)
            return
        held.wait(HANG_S)
        if reset:
            peer.reset()
        ended.set()  # and returning closes the connection

    held = threading.Event()
    with (
        Server(script) as server,
        holding(server.url(), "--idle", "3", "--drip", "20") as (process, line),
    ):
        assert line == "hammer: holding 3 connections\n"
        held.set()
        assert ended.wait(HANG_S)
        wait_for(lambda: server.connections == 4)  # it has come again
        result = end(process)
    found = report(result, "idle")
    assert (found["dropped"], found.get("reset", 0)) == (1, int(reset))
    assert found["reconnects"] == 1
    assert result["idle"]["first_loss_s"] == result["idle"]["last_loss_s"] > 0


def test_a_full_backlog_is_told_from_being_served() -> None:
    """Who is not let in within -t has timed out; the others are held, by the kernel at least."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with holding(url, "--idle", "6", "-t", "0.3", "--drip", "600000") as (process, line):
            result = end(process)
    found = report(result, "crowd")
    assert found["timed_out"] >= 1
    assert found["established"] + found["timed_out"] == 6
    assert line == f"hammer: holding {found['established']} connections\n"
    assert result["settled_s"] < HANG_S, "the last to time out is not waited for any longer"


def test_it_ends_with_hammer_that_is_killed() -> None:
    with Server(hold) as server, holding(server.url(), "--idle", "2") as (process, _):
        holders = children_of(process)
        assert holders
        process.kill()
        wait_until_gone(holders)


def test_herd_and_crowd_together() -> None:
    with (
        Server(keep_alive) as server,
        holding(server.url(), "--herd", "3", "--idle", "2") as (process, line),
    ):
        assert line == "hammer: holding 5 connections\n"
        result = end(process)
    assert report(result, "herd")["held"] == 3
    assert report(result, "idle")["held"] == 2
    assert len(server.heads) == 3


def test_for_people() -> None:
    with (
        Server(hold) as server,
        subprocess.Popen(
            [str(binary()), "--crowd", "2", server.url()], stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "hammer: holding 2 connections\n"
        process.terminate()
        out, _ = process.communicate(timeout=HANG_S)
    assert "idle: 2 wanted, 2 established, 2 held at the end" in out
