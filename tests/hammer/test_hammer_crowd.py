"""Slow, half-dead, idle and waiting clients, beside a load that is measured and without one."""

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.conformance import proc
from tests.hammer.hammer_support import (
    HANG_S,
    NOBODY,
    OK,
    OK_CLOSE,
    Peer,
    Script,
    Server,
    binary,
    errors_of,
    hold,
    holding,
    keep_alive,
    limited,
    measure,
    measure_on,
    one_reply,
    report,
    rows,
    run,
    wait_for,
)

SLOWLY = "--drip 600000"


def drop(_peer: Peer) -> None:
    """Returning closes the connection."""


def answer_408(peer: Peer) -> None:
    """Answers at once and waits until the client has seen it.

    Closed while the client sends, the connection would be reset, and the answer perhaps lost.
    """
    peer.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    with contextlib.suppress(OSError):  # the client may have gone
        peer.socket.shutdown(socket.SHUT_WR)
    hold(peer)


# ---- a crowd beside a load


def test_the_crowd_is_there_before_the_load_and_not_measured(tmp_path: Path) -> None:
    asked: list[int] = []

    def script(peer: Peer) -> None:
        if peer.request() is not None:
            asked.append(peer.number)
            peer.send(OK_CLOSE)

    samples = tmp_path / "samples"
    server, result = measure_on(script, f"-n 5 --idle 10 --half-dead 10 --samples {samples}")
    assert asked == [*range(21, 26)]
    for kind in ("idle", "half_dead"):
        assert report(result, kind) == {"wanted": 10, "established": 10, "held": 10}
    assert result["good"] == result["total"]["count"] == len(rows(samples)) == 5
    assert server.connections == 25, "all were there, and none came twice"


def test_crowd_that_is_refused_does_not_stop_the_load() -> None:
    result = measure(f"-n 3 --idle 4 --drip 1000 {NOBODY}")
    assert report(result, "idle") == {"wanted": 4, "refused": 4}
    assert 0 < result["idle"]["first_loss_s"] <= result["idle"]["last_loss_s"]
    assert errors_of(result) == {"connect_refused": 3}


# ---- a crowd without a load


def test_a_crowd_is_held_until_a_signal() -> None:
    """Of 20: 9 % slow are one, half are half-dead, and what is left is idle."""
    sent: dict[int, bytes] = {}

    def script(peer: Peer) -> None:
        sent[peer.number] = b""
        while data := peer.socket.recv(65536):
            sent[peer.number] += data

    options = f"--json --crowd 20 --slow 9% --half-dead 50% {SLOWLY}"
    with Server(script) as server, holding(options, server.url()) as held:
        assert held.line == "hammer: holding 20 connections\n"
        wait_for(lambda: sum(map(bool, sent.values())) == 10)
        result = held.end()
    for half in filter(None, sent.values()):
        assert half.startswith(b"GET / HTTP/1.1\r\n") and not half.endswith(b"\r\n\r\n")
    for kind, count in (("slow", 1), ("half_dead", 10), ("idle", 9), ("crowd", 20)):
        assert report(result, kind) == {"wanted": count, "established": count, "held": count}
    rest = {"schema", "parameters", "settled_s", "crowd", "slow", "slow_read", "half_dead"}
    assert set(result) == rest | {"idle", "herd"}
    assert result["crowd"]["first_loss_s"] is None
    assert server.connections == 20, "none came twice"


def test_more_than_one_process_may_have_descriptors_for() -> None:
    """With 40 descriptors 24 connections are left for each; an address of its own for each."""
    of_five = {f"127.1.0.{i}": 20 for i in range(1, 6)}
    options = "--json --idle 90 --half-dead 10"
    with Server(hold) as server, holding(options, server.url(), descriptors=40) as held:
        assert held.line == "hammer: holding 100 connections\n"
        wait_for(lambda: server.connections == 100)
        assert report(held.end(), "crowd")["held"] == 100
    assert {**server.sources} == of_five
    for herd in 100, 24:  # 24: poll() would not take as many as the window has
        with Server(keep_alive) as server:
            result = measure(f"-k -n 2 --herd {herd}", server.url(), before=limited(40))
        assert report(result, "herd")["held"] == herd
        assert {**server.sources} == {"127.0.0.1": 1, **(of_five if herd == 100 else {"127.1.0.1": 24})}


@pytest.mark.parametrize("options", ["--slow 1 --drip 1", f"--slow-read 1 {SLOWLY}"])
def test_slow_clients_read_slowly(options: str) -> None:
    """The server is stuck in its write: a slow reader has no buffer to speak of."""
    stuck: list[int] = []

    def send_much(peer: Peer) -> None:
        assert peer.request() is not None
        peer.socket.setblocking(False)
        much = b"HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n" + b"x" * 4_000_000
        stuck.append(peer.socket.send(much))
        peer.socket.setblocking(True)
        hold(peer)

    with Server(send_much) as server, holding(f"--json {options}", server.url()) as held:
        assert held.line == "hammer: holding 1 connections\n"
        wait_for(lambda: stuck)
        found = report(held.end(), options.split()[0][2:].replace("-", "_"))
    assert stuck[0] < 4_000_000
    assert found == {"wanted": 1, "established": 1, "held": 1}


def test_slow_clients_drip_and_come_again() -> None:
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
        return server.connections >= 7 and most_alone

    with (
        Server(read_slowly_sent) as server,
        holding("--json --slow 3 --drip 2", server.url()) as held,
    ):
        wait_for(enough)
        found = held.end()["slow"]
    assert found["wanted"] == 3
    assert min(found["served"], found["reconnects"]) >= 4


@pytest.mark.parametrize("kind", ["slow", "half-dead", "idle"])
@pytest.mark.parametrize("script", [answer_408, drop])
def test_what_the_server_ends_comes_again(kind: str, script: Script) -> None:
    """Answered, it is counted before the connection is closed."""
    options = f"--json --{kind} 2 --drip 5"
    with Server(script) as server, holding(options, server.url()) as held:
        wait_for(lambda: server.connections >= 6)
        found = held.end()[kind.replace("-", "_")]
    became, other = ("answered", "dropped") if script is answer_408 else ("dropped", "answered")
    assert min(found[became], found["reconnects"]) >= 4
    assert found[other] == found["served"] == found["refused"] == 0
    assert kind != "idle" or found["reset"] == 0, "with what it sent unread, it is a reset"


@pytest.mark.parametrize(
    ("options", "descriptors", "least_s"),
    [
        ("--idle 6 --ramp 10", 0, 5 / 10),
        ("--idle 40 --ramp 80", 24, 7 / 16),  # five processes, eight each, 16 a second
    ],
)
def test_the_ramp_is_that_of_all_processes(options: str, descriptors: int, least_s: float) -> None:
    """The last comes so long after the first, or later; its timer counts milliseconds."""
    with Server(hold) as server, holding(f"--json {options}", server.url(), descriptors) as held:
        assert held.line == f"hammer: holding {options.split()[1]} connections\n"
        assert held.end()["settled_s"] >= 0.95 * least_s


def test_a_crowd_leaves_with_a_reset() -> None:
    """No end of a connection stays in TIME-WAIT, on either side."""
    ends = []

    def until_the_end(peer: Peer) -> None:
        try:
            peer.socket.recv(65536)
            ends.append("closed")
        except ConnectionResetError:
            ends.append("reset")

    with Server(until_the_end) as server, holding("--json --idle 3", server.url()) as held:
        held.end()
    assert ends == ["reset"] * 3


def test_a_reset_is_counted_as_one() -> None:
    all_held, ended = threading.Event(), threading.Event()

    def script(peer: Peer) -> None:
        if peer.number > 1:
            hold(peer)
            return
        all_held.wait(HANG_S)
        peer.reset()
        ended.set()

    options = "--json --idle 3 --drip 20"
    with Server(script) as server, holding(options, server.url()) as held:
        assert held.line == "hammer: holding 3 connections\n"
        all_held.set()
        assert ended.wait(HANG_S)
        wait_for(lambda: server.connections == 4)  # it has come again
        result = held.end()
    found = report(result, "idle")
    assert (found["dropped"], found["reset"], found["reconnects"]) == (1, 1, 1)
    assert result["idle"]["first_loss_s"] == result["idle"]["last_loss_s"] > 0


def test_what_an_idle_client_is_told_is_received() -> None:
    """More than the sockets hold: else its server could neither go on nor close."""
    sent = threading.Event()

    def script(peer: Peer) -> None:
        peer.send(b"x" * (32 << 20))
        sent.set()

    with Server(script) as server, holding("--idle 1", server.url()):
        assert sent.wait(HANG_S)


def test_a_full_backlog_is_told_from_being_served() -> None:
    """Who is not let in within -t has timed out; the others are held, by the kernel at least."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with holding(f"--json --idle 6 -t 0.3 {SLOWLY}", url) as held:
            result = held.end()
    found = report(result, "crowd")
    assert found["timed_out"] >= 1
    assert found["established"] + found["timed_out"] == 6
    assert held.line == f"hammer: holding {found['established']} connections\n"
    assert result["settled_s"] < HANG_S, "the last to time out is not waited for any longer"


def test_herd_and_crowd_together_told_to_people() -> None:
    with Server(keep_alive) as server, holding("--herd 3 --crowd 2", server.url()) as held:
        assert held.line == "hammer: holding 5 connections\n"
        assert held.children
        status, told, err = held.stop(signal.SIGINT)
    assert (status, err) == (0, "")
    assert "herd: 3 wanted, 3 established, 3 held at the end; 3 served" in told
    assert "idle: 2 wanted, 2 established, 2 held at the end" in told
    assert len(server.heads) == 3


def ended_early(*options: str) -> tuple[int, str, str, int]:
    """The status and output of one that is ended while it waits for its herd; connections it had until then."""
    with (
        Server(hold) as server,
        subprocess.Popen(
            [str(binary()), *options, "--herd", "1", server.url()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        wait_for(lambda: signal.SIGTERM in proc.blocked_signals(process.pid))
        process.terminate()
        out, err = process.communicate(timeout=HANG_S)
    return process.returncode, out, err, server.connections


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_signal_before_all_is_decided_is_told(options: list[str]) -> None:
    status, out, err, _ = ended_early(*options)
    assert (status, err) == (1, "hammer: herd: 0 of 1 connections at the end\n")
    assert '"settled_s": null, ' in out or out.startswith("interrupted before all was decided, after ")


def test_a_signal_before_the_herd_is_there_begins_no_crowd() -> None:
    status, out, _, connections = ended_early("-n", "1", "--idle", "3")
    assert (status, connections <= 1) == (128 + signal.SIGTERM, True)
    assert out.startswith("interrupted") and "idle: 3 wanted, 0 established, 0 held at the end" in out


# ---- a herd: idle keep-alive connections in processes of their own, there before the load begins

WINDOW = 129  # connections that one process opens at once (benchmarks/load/herd.c)


def test_a_herd_asks_once_and_is_held() -> None:
    server, result = measure_on(keep_alive, "-n 3 --herd 20")
    closing = [b"Connection: close" in head for head in server.heads]
    assert closing == [False] * 20 + [True] * 3, "first the herd with keep-alive, then the load"
    assert report(result, "herd") == {"wanted": 20, "established": 20, "served": 20, "held": 20}
    assert result["good"] == result["total"]["count"] == 3, "the herd is not measured"
    assert server.connections == 23


def test_a_herd_comes_from_the_sources_and_goes_to_the_urls_in_turn() -> None:
    server, _ = measure_on(keep_alive, "-k -n 1 --herd 6 --source 127.0.0.7-127.0.0.8")
    assert sorted(server.sources.values()) == [3, 4], "with the one that is measured"
    assert {*server.sources} == {"127.0.0.7", "127.0.0.8"}
    with (
        Server(keep_alive) as first,
        Server(keep_alive) as second,
        holding(f"--herd 5 {first.url()}", second.url()),
    ):
        assert (first.connections, second.connections) == (3, 2)


def test_only_a_window_is_on_its_way_at_once() -> None:
    answers = threading.Event()

    waiting: list[int] = []

    def script(peer: Peer) -> None:
        if peer.number == WINDOW:
            time.sleep(0.1)  # for those that must not come
            waiting.append(peer.server.connections)
            answers.set()
        answers.wait(HANG_S)
        keep_alive(peer)

    _, result = measure_on(script, "-k -n 1 --herd 300")
    assert waiting == [WINDOW]
    assert report(result, "herd")["held"] == 300


NOT_KEPT = "had a reply that is not 2xx with keep-alive"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (one_reply(OK_CLOSE), NOT_KEPT),
        (one_reply(b"HTTP/1.1 200 OK\r\n\r\nto the end"), NOT_KEPT),
        (one_reply(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), NOT_KEPT),
        (one_reply(b"SSH-2.0-OpenSSH_9.2\r\n"), NOT_KEPT),
        (one_reply(OK + b"surplus"), NOT_KEPT),
        (one_reply(b""), "was closed by the server before it had a reply"),
        (None, "could not be opened: Connection refused"),
    ],
)
def test_a_herd_that_cannot_be_had_is_one_line(script: Script | None, why: str) -> None:
    with Server(script or hold) as server:
        result = run("-n 1 --herd 1", server.url() if script else NOBODY)
    assert server.connections == bool(script), "no load without the herd"
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"hammer: herd: 0 of 1 connections, the next {why}\n"


def test_an_incomplete_herd_says_how_much_of_it_was_there() -> None:
    def four_are_kept(peer: Peer) -> None:
        (keep_alive if peer.number <= 4 else hold)(peer)

    with Server(four_are_kept) as server:
        result = run("--herd 5 -t 1", server.url())
    assert result.returncode == 1
    assert result.stderr == "hammer: herd: 4 of 5 connections, the next had no reply in time\n"


def test_without_a_load_what_is_dropped_is_an_error() -> None:
    closed = threading.Event()

    def script(peer: Peer) -> None:
        if peer.number < 5:
            keep_alive(peer)
            return
        one_reply(OK)(peer)
        peer.socket.close()
        closed.set()

    with Server(script) as server, holding("--herd 5", server.url()) as held:
        assert closed.wait(HANG_S)
        status, out, err = held.stop()
    assert status == 1
    assert "herd: 5 wanted, 5 established, 4 held at the end; 5 served" in out
    assert ", 1 dropped" in out
    assert err == "hammer: herd: 4 of 5 connections at the end\n"


@pytest.mark.parametrize("options", ["--herd 5", "--idle 2"])
def test_its_processes_end_with_hammer_that_is_killed(options: str) -> None:
    with Server(keep_alive) as server, holding(options, server.url()) as held:
        assert held.children
        held.process.kill()
        wait_for(lambda: not any(map(proc.alive, held.children)))


def test_a_process_of_it_that_dies_is_one_line() -> None:
    with Server(keep_alive) as server, holding("--herd 5", server.url()) as held:
        os.kill(held.children[0], signal.SIGKILL)
        wait_for(lambda: not any(map(proc.alive, held.children)))
        status, _, err = held.stop()
    assert (status, err) == (1, "hammer: herd: 1 of its processes died\n")
