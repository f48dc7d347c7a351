"""Slow, half-dead and idle clients: what they do, and that they are not measured."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hammer_support import (
    HANG_S,
    OK,
    OK_CLOSE,
    Peer,
    Server,
    measure,
    measure_until,
    one_reply,
    rows,
)

COUNTS = {
    "wanted",
    "established",
    "served",
    "answered",
    "dropped",
    "reset",
    "refused",
    "timed_out",
    "reconnects",
    "held",
    "first_loss_s",
    "last_loss_s",
}
TIMES = {"first_loss_s", "last_loss_s"}


def report(result: Mapping[str, Mapping[str, int]], kind: str) -> dict[str, int]:
    """What became of one kind, without the zeros and without when."""
    assert set(result[kind]) == COUNTS
    return {key: n for key, n in result[kind].items() if n and key not in TIMES}


class Sorter:
    """Tells the one measured client (-c 1, -k) from the crowd, whatever the machine's speed.

    hammer connects the whole crowd before it measures. Nobody in the crowd is dealt with before the
    measured client has come, so none has come again by then: that one is the next after the crowd.
    """

    def __init__(self, script: Callable[[Peer], object], crowd: int) -> None:
        self.script = script  # what happens to the crowd
        self.crowd = crowd
        self.begun = 0  # how many connections of the crowd `script` has begun to deal with
        self.done = 0  # and has dealt with
        self.answers = 0  # replies to the measured client, the last perhaps on its way
        self._measured_is_here = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, peer: Peer) -> None:
        if peer.number == self.crowd + 1:
            self._measured_is_here.set()
            self._answer(peer)
            return
        self._measured_is_here.wait(HANG_S)
        with self._lock:
            self.begun += 1
        self.script(peer)
        with self._lock:
            self.done += 1

    def _answer(self, peer: Peer) -> None:
        while peer.request() is not None:
            time.sleep(0.005)  # leaves the machine to the others
            self.answers += 1
            peer.send(OK)


def drop(_peer: Peer) -> None:
    """Returning closes the connection."""


def hold(peer: Peer) -> None:
    peer.wait_for_end()


def answer_408(peer: Peer) -> bool:
    """Answers at once and waits until the client has seen it; whether it still sent its request.

    Closed while the client sends, the connection would be reset, and the answer perhaps lost.
    """
    peer.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    with contextlib.suppress(OSError):  # the client may have gone
        peer.socket.shutdown(socket.SHUT_WR)
    whole = peer.request() is not None
    peer.wait_for_end()
    return whole


def test_slow_clients_drip_and_are_not_in_the_samples(tmp_path: Path) -> None:
    pieces: list[list[int]] = []

    def read_slowly_sent(peer: Peer) -> None:
        data, sizes = b"", []
        while not data.endswith(b"\r\n\r\n"):
            piece = peer.socket.recv(65536)
            if not piece:
                return
            sizes.append(len(piece))
            data += piece
        pieces.append(sizes)
        peer.send(OK_CLOSE)

    def enough() -> bool:
        """The seventh can only come after four have read their replies.

        Bytes meet in one recv when the server's thread is late, but sometimes most come alone.
        """
        most_alone = any(len(sizes) > sum(sizes) / 2 for sizes in pieces)
        return sorter.begun >= 7 and sorter.answers >= 2 and most_alone

    samples = tmp_path / "samples"
    sorter = Sorter(read_slowly_sent, 3)
    with Server(sorter) as server:
        result = measure_until(
            server, enough, "-k", "--slow", "3", "--drip", "2", "--samples", str(samples)
        )
    assert result["slow"]["wanted"] == result["slow"]["established"] == 3
    assert result["slow"]["served"] >= 4
    assert result["slow"]["reconnects"] >= 4, "they begin again"
    assert result["failed"] == 0
    assert result["good"] == result["total"]["count"] == len(rows(samples)) > 0
    assert result["good"] <= sorter.answers


def test_slow_clients_read_slowly() -> None:
    """The server is stuck in its write: a slow reader has no buffer to speak of."""
    stuck: list[int] = []
    body = b"x" * 4_000_000

    def send_much(peer: Peer) -> None:
        peer.request()
        peer.socket.setblocking(False)
        stuck.append(peer.socket.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n" + body))
        peer.socket.setblocking(True)
        peer.wait_for_end()

    with Server(Sorter(send_much, 1)) as server:
        result = measure_until(server, lambda: len(stuck) == 1, "-k", "--slow", "1", "--drip", "1")
    assert stuck[0] < len(body)
    assert report(result, "slow") == {"wanted": 1, "established": 1, "held": 1}


def test_slow_client_sees_an_early_answer() -> None:
    early: list[int] = []

    def script(peer: Peer) -> None:
        if not answer_408(peer):
            early.append(peer.number)

    with Server(Sorter(script, 2)) as server:
        result = measure_until(server, lambda: len(early) >= 3, "-k", "--slow", "2", "--drip", "1")
    assert result["slow"]["answered"] >= 3, "counted before the connection is closed"
    assert result["slow"]["served"] == result["slow"]["dropped"] == 0
    assert result["failed"] == 0


@pytest.mark.parametrize("kind", ["slow", "half-dead", "idle"])
def test_dropped_clients_come_again(kind: str) -> None:
    sorter = Sorter(drop, 2)
    with Server(sorter) as server:
        result = measure_until(
            server, lambda: sorter.begun >= 6, "-k", f"--{kind}", "2", "--drip", "5"
        )
    found = result[kind.replace("-", "_")]
    assert found["established"] == 2
    assert found["dropped"] >= 4
    assert found["reconnects"] >= 4
    assert found["served"] == found["answered"] == found["refused"] == 0
    assert result["failed"] == 0


def test_half_dead_clients_send_half_a_head() -> None:
    halves: list[bytes] = []

    def script(peer: Peer) -> None:
        if half := peer.socket.recv(65536):  # else it ended between connect and send
            halves.append(half)

    with Server(Sorter(script, 2)) as server:
        measure_until(server, lambda: len(halves) >= 2, "-k", "--half-dead", "2")
    assert all(half.startswith(b"GET / HTTP/1.1\r\n") for half in halves)
    assert not any(half.endswith(b"\r\n\r\n") for half in halves)


def test_idle_clients_send_nothing() -> None:
    sent: list[bytes] = []

    def script(peer: Peer) -> None:
        peer.socket.settimeout(0.02)
        with contextlib.suppress(TimeoutError):
            sent.append(peer.socket.recv(65536))

    sorter = Sorter(script, 2)
    with Server(sorter) as server:
        measure_until(server, lambda: sorter.done >= 2, "-k", "--idle", "2")
    assert not any(sent), "nothing but its end"


@pytest.mark.parametrize("kind", ["half-dead", "idle"])
def test_quiet_clients_are_held(kind: str) -> None:
    sorter = Sorter(hold, 20)
    with Server(sorter) as server:
        result = measure("-n", "5", "-k", f"--{kind}", "20", server.url())
    name = kind.replace("-", "_")
    assert report(result, name) == {"wanted": 20, "established": 20, "held": 20}
    assert result["good"] == sorter.answers == 5
    assert server.connections == 21, "all were there, and none came twice"


@pytest.mark.parametrize("kind", ["half-dead", "idle"])
def test_quiet_clients_that_are_answered(kind: str) -> None:
    sorter = Sorter(answer_408, 1)
    with Server(sorter) as server:
        result = measure_until(
            server, lambda: sorter.done >= 3, "-k", f"--{kind}", "1", "--drip", "1"
        )
    assert result[kind.replace("-", "_")]["answered"] >= 3
    assert result[kind.replace("-", "_")]["dropped"] == 0


def test_the_crowd_is_there_before_the_load() -> None:
    asked: list[int] = []

    def script(peer: Peer) -> None:
        if peer.request() is not None:
            asked.append(peer.number)
            peer.send(OK_CLOSE)

    with Server(script) as server:
        measure("-n", "1", "--idle", "10", server.url())
    assert asked == [11]


def test_crowd_that_is_refused_does_not_stop_the_load() -> None:
    with Server(one_reply(OK_CLOSE)) as gone:
        dead = gone.url()  # nobody listens there any more
    result = measure("-n", "3", "--idle", "4", "--drip", "1000", dead)
    assert report(result, "idle") == {"wanted": 4, "refused": 4}
    assert result["errors"]["connect_refused"] == 3
