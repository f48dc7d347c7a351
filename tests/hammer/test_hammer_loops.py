"""Closed and open loop, warm-up, the end of a run, and an early end."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from hammer_support import (
    HANG_S,
    OK,
    Peer,
    Script,
    Server,
    binary,
    errors_of,
    keep_alive,
    measure,
    measure_until,
    rows,
)

STALL_S = 0.3


def stall_once() -> Script:
    """One request at a time for all connections; the 20th takes 300 ms."""
    turn = threading.Lock()
    served = 0

    def script(peer: Peer) -> None:
        nonlocal served
        while peer.request() is not None:
            with turn:
                served += 1
                if served == 20:
                    time.sleep(STALL_S)
            peer.send(OK)

    return script


def test_open_loop_sees_what_the_closed_loop_omits(tmp_path: Path) -> None:
    """Coordinated omission: a stall delays all requests intended while it lasts."""
    samples = tmp_path / "samples"
    with Server(stall_once()) as server:
        closed = measure("-k", "-n", "100", "-c", "1", "--samples", str(samples), server.url())
    slow = [row for row in rows(samples) if int(row["total_ns"]) > 0.9 * STALL_S * 1e9]
    assert len(slow) == 1
    assert closed["total_from_intended"] is None

    with Server(stall_once()) as server:
        opened = measure(
            "-k", "-r", "100", "-n", "100", "-c", "1", "--samples", str(samples), server.url()
        )
    slow = [row for row in rows(samples) if int(row["total_ns"]) > 0.9 * STALL_S * 1e9]
    assert len(slow) == 1
    # 30 requests were intended during the stall; those of its first two thirds waited longest.
    waited = [
        row
        for row in rows(samples)
        if int(row["start_ns"]) - int(row["intended_ns"]) + int(row["total_ns"]) > STALL_S / 3 * 1e9
    ]
    assert len(waited) >= 18
    assert opened["total_from_intended"]["p90"] > STALL_S / 3 * 1e9
    assert opened["total"]["p90"] < opened["total_from_intended"]["p90"]
    assert opened["schedule"]["max_waiting"] >= 18
    assert opened["schedule"]["max_lateness_ns"] > 0.8 * STALL_S * 1e9
    assert opened["schedule"]["max_own_lateness_ns"] < opened["schedule"]["max_lateness_ns"]


def test_open_loop_keeps_its_schedule(tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    with Server(keep_alive) as server:
        result = measure("-k", "-r", "200", "-s", "0.5", "--samples", str(samples), server.url())
    assert result["requests"] == 100
    assert len(server.heads) == 100
    intended = [int(row["intended_ns"]) for row in rows(samples)]
    assert sorted(intended) == [i * 5_000_000 for i in range(100)]
    assert all(int(row["start_ns"]) >= int(row["intended_ns"]) for row in rows(samples))
    assert result["parameters"]["loop"] == "open"
    assert result["little"] is None


def test_open_loop_uses_all_connections_alike() -> None:
    with Server(keep_alive) as server:
        result = measure("-k", "-r", "400", "-n", "80", "-c", "8", server.url())
    assert result["fairness"]["min"] > 0
    assert server.connections == 8


def test_open_loop_that_cannot_keep_up_says_what_it_never_sent() -> None:
    def silent(peer: Peer) -> None:
        peer.wait_for_end()

    with Server(silent) as server:
        result = measure("-r", "100", "-s", "0.5", "-c", "1", "-t", "0.3", server.url())
    assert result["good"] == 0
    done = result["requests"] + result["unfinished"] + result["unsent"]
    assert done == 50, "every intended request is accounted for"
    assert result["unsent"] > 0
    assert errors_of(result) == {"timeout": result["requests"]}


def test_closed_loop_ends_after_seconds() -> None:
    with Server(keep_alive) as server:
        result = measure("-k", "-s", "0.3", "-c", "2", server.url())
    assert 0.3 <= result["seconds"] < 3
    assert result["good"] > 0
    assert result["good"] + result["unfinished"] <= len(server.heads) + 2
    assert result["requests_per_s"] == pytest.approx(result["good"] / result["seconds"])


def test_first_limit_reached_ends_the_run() -> None:
    with Server(keep_alive) as server:
        result = measure("-k", "-s", "30", "-n", "10", server.url())
    assert result["requests"] == 10
    assert result["seconds"] < 10


@pytest.mark.parametrize(
    "options", [["-k", "-c", "3"], ["-k", "-r", "200", "-c", "3"]], ids=["closed", "open"]
)
def test_warm_up_is_kept_apart(options: list[str], tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    with Server(keep_alive) as server:
        result = measure("-w", "0.2", "-n", "50", "--samples", str(samples), *options, server.url())
    assert result["requests"] == 50
    assert result["total"]["count"] == 50
    assert len(rows(samples)) == 50
    assert result["warm_up"]["requests"] > 0
    assert result["warm_up"]["seconds"] >= 0.2
    assert result["warm_up"]["requests"] + 50 == len(server.heads)
    assert result["connections"]["opened"] == 0, "they were opened in the warm-up"


def test_no_warm_up_no_report_of_it() -> None:
    with Server(keep_alive) as server:
        assert measure("-n", "1", server.url())["warm_up"] is None


def test_littles_law_holds_in_a_closed_loop() -> None:
    def script(peer: Peer) -> None:
        while peer.request() is not None:
            time.sleep(0.01)
            peer.send(OK)

    with Server(script) as server:
        little = measure("-k", "-s", "0.5", "-c", "4", server.url())["little"]
    assert little["n"] == 4
    assert little["ratio"] == pytest.approx(little["x"] * little["r"] / 4, rel=1e-6)
    assert 0.7 < little["ratio"] <= 1.05


def stopped(server: Server, *signals: int) -> tuple[int, str]:
    """Starts an endless run, sends the signals once it fetches, returns status and output."""
    with subprocess.Popen(
        [str(binary()), "-k", "-s", "600", server.url()], stdout=subprocess.PIPE, text=True
    ) as process:
        while len(server.heads) < 3:
            time.sleep(0.01)
        for number in signals:
            process.send_signal(number)
        out, _ = process.communicate(timeout=HANG_S)
    return process.returncode, out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_the_summary(number: int) -> None:
    with Server(keep_alive) as server:
        status, out = stopped(server, number)
    assert status == 128 + number
    assert out.startswith("interrupted")
    assert " fetches, 1 max parallel, " in out


def test_interrupted_json_says_so() -> None:
    with Server(keep_alive) as server:
        result = measure_until(server, lambda: len(server.heads) > 3, "-k", "-w", "600")
    assert result["requests"] == 0, "all of it was warm-up"
    assert result["warm_up"]["requests"] >= 3
    assert result["seconds"] == 0


@pytest.mark.parametrize("start", [[], ["sh", "-c", "trap '' INT; exec \"$@\"", "in background"]])
def test_a_second_signal_ends_it_at_once(start: list[str]) -> None:
    """The summary goes to a pipe that is full, so the first signal alone would hang there."""
    with (
        Server(keep_alive) as server,
        subprocess.Popen(
            [*start, str(binary()), "--json", "-k", "-s", "600", server.url()],
            stdout=subprocess.PIPE,
            pipesize=4096,
        ) as process,
    ):
        while len(server.heads) < 2000:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert process.stdout.read(1) == b"{", "the summary has begun"
        process.send_signal(signal.SIGINT)
        process.wait(timeout=HANG_S)
    assert process.returncode == -signal.SIGINT


def in_two_parts(peer: Peer) -> None:
    """The second waits until the first is acknowledged: Nagle's algorithm."""
    head, _, body = OK.partition(b"\r\n\r\n")
    while peer.request() is not None:
        peer.send(head + b"\r\n\r\n")
        peer.send(body)


def test_quickack_spares_a_reply_in_two_parts_the_delayed_acknowledgement() -> None:
    with Server(in_two_parts) as server:
        delayed = measure("-k", "-n", "12", server.url())
        at_once = measure("-k", "-n", "12", "--quickack", server.url())
    assert at_once["parameters"]["quickack"] is True
    assert (delayed["good"], at_once["good"]) == (12, 12)
    assert delayed["total"]["median"] > 3 * at_once["total"]["median"]
