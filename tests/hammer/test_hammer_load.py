"""How many requests, over how many connections, to which URLs, when; how a run ends."""

import json
import re
import signal
import subprocess
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from tests.hammer.hammer_support import (
    HANG_S,
    OK,
    OK_CLOSE,
    Peer,
    Script,
    Server,
    binary,
    errors_of,
    hold,
    keep_alive,
    measure,
    measure_on,
    one_reply,
    rows,
    wait_for,
)

# ---- connections


def test_keep_alive_reuses_connections() -> None:
    server, result = measure_on(keep_alive, "-k -n 200 -c 4")
    assert (len(server.heads), server.connections) == (200, 4)
    assert (result["requests"], result["good"], result["failed"]) == (200, 200, 0)
    assert (result["connections"]["opened"], result["connections"]["reused"]) == (4, 196)
    assert (result["connect"]["count"], result["total"]["count"]) == (4, 200)
    assert b"connection:" not in server.heads[0].lower()
    assert 0 < result["fairness"]["min"] <= 50 <= result["fairness"]["max"] <= 197


def test_close_uses_a_connection_for_each() -> None:
    server, result = measure_on(one_reply(OK_CLOSE), "-n 50 -c 3")
    assert server.connections == len(server.heads) == 50
    assert (result["requests"], result["good"], result["failed"]) == (50, 50, 0)
    assert (result["status"]["2xx"], result["codes"]) == (50, {"200": 50})
    assert (result["bytes"]["body"], result["unfinished"]) == (250, 0)
    assert (result["connections"]["opened"], result["connections"]["reused"]) == (50, 0)
    assert result["connect"]["count"] == 50
    assert b"Connection: close" in server.heads[0]


def test_who_closes() -> None:
    """A server that ignores "Connection: close" and says nothing of it does not block us; one that
    closes what was to be kept, and says so, makes no error.
    """
    server, result = measure_on(keep_alive, "-n 20 -t 30")
    assert (server.connections, result["good"]) == (20, 20)
    server, result = measure_on(one_reply(OK_CLOSE), "-k -n 20")
    assert (server.connections, errors_of(result)) == (20, {})
    assert (result["connections"]["closed_by_server"], result["connections"]["resent"]) == (20, 0)


def test_silent_close_after_a_complete_reply_is_no_error() -> None:
    """The next request meets the close; it is sent again and no fetch is lost or doubled. In an
    open loop the close is noticed while the connection is idle.
    """

    def two_replies(peer: Peer) -> None:
        for _ in range(2):
            if peer.request() is not None:
                peer.send(OK)

    for script, options, least in (
        (two_replies, "-k -n 40 -c 2", 18),
        (one_reply(OK), "-k -r 50 -n 20 -c 1", 19),
    ):
        server, result = measure_on(script, options)
        assert errors_of(result) == {}
        assert server.connections in (20, 21)
        assert result["good"] == len(server.heads) == result["requests"]
        assert least <= result["connections"]["closed_by_server"] <= 20


def test_quickack_spares_a_reply_in_two_parts_the_delayed_acknowledgement() -> None:
    """The second part waits until the first is acknowledged: Nagle's algorithm. On a busy machine what does not wait
    may be as late, though not five times in a row.
    """
    in_two_parts = partial(keep_alive, pieces=(OK[:-5], OK[-5:]))
    for _ in range(5):
        _, delayed = measure_on(in_two_parts, "-k -n 12")
        _, at_once = measure_on(in_two_parts, "-k -n 12 --quickack")
        assert at_once["parameters"]["quickack"] is True
        assert (delayed["good"], at_once["good"]) == (12, 12)
        medians = delayed["total"]["median"], at_once["total"]["median"]
        if medians[0] > 3 * medians[1]:
            return
    pytest.fail(f"with the delay and without: {medians}")


# ---- replies and requests


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 13),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nabc", 3),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 0),
        (b"HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 2),
    ],
)
def test_framing(reply: bytes, body: int) -> None:
    """In one piece, and each byte a segment of its own. More framings: reply_test.c."""

    def bytewise(peer: Peer) -> None:
        peer.socket.setsockopt(6, 1, 1)  # TCP_NODELAY
        if peer.request() is not None:
            for i in range(len(reply)):
                peer.send(reply[i : i + 1])

    for script in (one_reply(reply), bytewise):
        _, result = measure_on(script, "-n 3 -t 30")
        assert errors_of(result) == {}
        assert result["bytes"] == {"body": 3 * body, "total": 3 * len(reply)}


def test_request_is_complete_and_head_has_no_body() -> None:
    with Server(keep_alive) as server:
        measure("-n 1", server.url("/a/b?c=d"))
    assert server.heads[0].startswith(b"GET /a/b?c=d HTTP/1.1\r\n")
    assert f"\r\nHost: 127.0.0.1:{server.port}\r\n".encode() in server.heads[0]
    promise = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    server, result = measure_on(one_reply(promise), "--head -k -n 10 -t 30")
    assert errors_of(result) == {}
    assert server.heads[0].startswith(b"HEAD / HTTP/1.1\r\n")


def test_random_choice_covers_the_list_and_follows_the_seed(tmp_path: Path) -> None:
    samples, urls = tmp_path / "samples", tmp_path / "urls"
    with Server(keep_alive) as server:
        urls.write_text("# comment\n\n" + "".join(server.url(f"/{i}") + "\n" for i in range(20)))

        def chosen(seed: int, clients: int) -> tuple[list[str], list[bytes]]:
            before = len(server.heads)
            measure(f"-k -n 400 -c {clients} --seed {seed} --samples {samples} -i {urls}")
            return sorted(row["url"] for row in rows(samples)), server.heads[before:]

        (first, _), (again, _), (other, _) = chosen(1, 3), chosen(1, 3), chosen(2, 3)
        assert set(first) == {str(i) for i in range(20)}
        assert first == again != other
        # Where there is one client, in the same order.
        assert chosen(7, 1)[1] == chosen(7, 1)[1] != chosen(8, 1)[1]
    paths = {m[1] for head in server.heads if (m := re.match(rb"GET /(\d+) ", head))}
    assert len(paths) == 20


def test_urls_may_come_from_a_pipe() -> None:
    """Which can be read once; the herd's requests differ from the others."""
    with Server(keep_alive) as server:
        words = [str(binary()), "--json", "-n", "3", "--herd", "2", "-i", "/dev/stdin"]
        done = subprocess.run(
            words, input=server.url("/a"), capture_output=True, text=True, timeout=HANG_S, check=False
        )
    assert (done.stderr, json.loads(done.stdout)["good"]) == ("", 3)
    assert [b"Connection: close" in head for head in server.heads] == [False] * 2 + [True] * 3


def test_several_servers() -> None:
    with Server(keep_alive) as one, Server(keep_alive) as two:
        assert measure("-k -n 100 -c 2", one.url(), two.url())["good"] == 100
    assert len(one.heads) + len(two.heads) == 100
    assert min(len(one.heads), len(two.heads)) > 0


def test_source_addresses_are_used_in_turn() -> None:
    server, _ = measure_on(one_reply(OK_CLOSE), "-n 9 --source 127.0.1.1-127.0.1.2,127.0.2.9")
    assert server.sources == {"127.0.1.1": 3, "127.0.1.2": 3, "127.0.2.9": 3}


# ---- when

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

    def slow(least_s: float, since: str) -> int:
        """How many took so long since they began, or since they were to begin."""
        late = (
            int(row["total_ns"]) + int(row["start_ns"]) - int(row[since]) for row in rows(samples)
        )
        return sum(ns > least_s * 1e9 for ns in late)

    _, closed = measure_on(stall_once(), f"-k -n 100 -c 1 --samples {samples}")
    assert slow(0.9 * STALL_S, "start_ns") == 1
    assert closed["total_from_intended"] is None

    _, opened = measure_on(stall_once(), f"-k -r 100 -n 100 -c 1 --samples {samples}")
    assert slow(0.9 * STALL_S, "start_ns") == 1
    # 30 requests were intended during the stall; those of its first two thirds waited longest.
    assert slow(STALL_S / 3, "intended_ns") >= 18
    assert opened["total_from_intended"]["p90"] > STALL_S / 3 * 1e9
    assert opened["total"]["p90"] < opened["total_from_intended"]["p90"]
    schedule = opened["schedule"]
    assert schedule["max_waiting"] >= 18
    assert schedule["max_lateness_ns"] > 0.8 * STALL_S * 1e9
    assert schedule["max_own_lateness_ns"] < schedule["max_lateness_ns"]


def test_open_loop_keeps_its_schedule_with_all_connections_alike(tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    server, result = measure_on(keep_alive, f"-k -r 200 -s 0.5 -c 8 --samples {samples}")
    assert result["requests"] == len(server.heads) == 100
    intended = [int(row["intended_ns"]) for row in rows(samples)]
    assert sorted(intended) == [i * 5_000_000 for i in range(100)]
    assert all(int(row["start_ns"]) >= int(row["intended_ns"]) for row in rows(samples))
    assert (result["parameters"]["loop"], result["little"]) == ("open", None)
    assert (result["fairness"]["min"] > 0, server.connections) == (True, 8)


@pytest.mark.parametrize("warm_up", ["0", "0.3"])
def test_open_loop_that_cannot_keep_up_says_what_it_never_sent(warm_up: str) -> None:
    _, result = measure_on(hold, f"-r 100 -s 0.5 -c 1 -t 0.3 -w {warm_up}")
    assert result["good"] == 0
    done = result["requests"] + result["unfinished"] + result["unsent"]
    assert done == 50, "every request intended after the warm-up is accounted for"
    assert result["unsent"] > 0
    assert result["errors"]["timeout"] == result["requests"]


def test_open_loop_counts_by_the_window_in_which_requests_were_due() -> None:
    """The wait for the last replies is nobody's rate."""
    _, result = measure_on(partial(keep_alive, pause_s=0.4), "-k -r 50 -s 0.5 -c 40")
    assert (result["good"], result["seconds"] > 0.8) == (25, True)
    assert result["requests_per_s"] == pytest.approx(50)


@pytest.mark.parametrize("options", ["-k -c 3", "-k -r 200 -c 3"], ids=["closed", "open"])
def test_warm_up_is_kept_apart(options: str, tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    server, result = measure_on(keep_alive, f"{options} -w 0.2 -n 50 --samples {samples}")
    assert result["requests"] == result["total"]["count"] == len(rows(samples)) == 50
    assert result["warm_up"]["requests"] > 0
    assert result["warm_up"]["seconds"] >= 0.2
    assert result["warm_up"]["requests"] + 50 == len(server.heads)
    assert result["connections"]["opened"] == 0, "they were opened in the warm-up"


def test_littles_law_holds_in_a_closed_loop() -> None:
    """But for what is under way when the run ends: the longer the run, the smaller its part."""
    _, result = measure_on(partial(keep_alive, pause_s=0.01), "-k -s 2 -c 4")
    little = result["little"]
    assert little["n"] == 4
    assert little["ratio"] == pytest.approx(little["x"] * little["r"] / 4, rel=1e-6)
    assert 0.7 < little["ratio"] <= 1.05


# ---- the end


def test_the_first_limit_reached_ends_the_run() -> None:
    server, result = measure_on(keep_alive, "-k -s 0.3 -c 2")
    assert 0.3 <= result["seconds"] < 3
    assert result["good"] > 0
    assert result["good"] + result["unfinished"] <= len(server.heads) + 2
    assert result["requests_per_s"] == pytest.approx(result["good"] / result["seconds"])
    _, result = measure_on(keep_alive, "-k -s 30 -n 10")
    assert (result["requests"], result["warm_up"]) == (10, None)
    assert result["seconds"] < 10


def interrupted(options: str, number: int) -> tuple[int, str]:
    """The status and output of a run that is sent a signal after its third request."""
    with Server(keep_alive) as server:
        command = [str(binary()), "-k", "-s", "60", *options.split(), server.url()]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                wait_for(lambda: len(server.heads) > 3)
                process.send_signal(number)
                out, _ = process.communicate(timeout=HANG_S)
            finally:
                process.kill()
    return process.returncode, out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_the_summary(number: int) -> None:
    status, out = interrupted("", number)
    assert status == 128 + number
    assert out.startswith("interrupted")
    assert " fetches, 1 max parallel, " in out


def test_interrupted_json_says_so() -> None:
    result = json.loads(interrupted("--json -w 60", signal.SIGINT)[1])
    assert result["interrupted"] is True
    assert result["requests"] == 0, "all of it was warm-up"
    assert result["warm_up"]["requests"] >= 3
    assert result["seconds"] == 0


@pytest.mark.parametrize("start", [[], ["sh", "-c", "trap '' INT; exec \"$@\"", "in background"]])
def test_a_second_signal_ends_it_at_once(start: list[str]) -> None:
    """The summary goes to a pipe that is full, so the first signal alone would hang there. Deaf to
    signals it would end after a minute, and not well.
    """
    with (
        Server(keep_alive) as server,
        subprocess.Popen(
            [*start, str(binary()), "--json", "-k", "-s", "60", server.url()],
            stdout=subprocess.PIPE,
            pipesize=4096,
        ) as process,
    ):
        wait_for(lambda: len(server.heads) >= 2000)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert process.stdout.read(1) == b"{", "the summary has begun"
        process.send_signal(signal.SIGINT)
        process.wait(timeout=HANG_S)
    assert process.returncode == -signal.SIGINT


def test_two_signals_end_it_where_it_prints_after_its_own_end() -> None:
    with (
        Server(keep_alive) as server,
        subprocess.Popen(
            [str(binary()), "--json", "-k", "-n", "3000", server.url()], stdout=subprocess.PIPE, pipesize=4096
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.read(1) == b"{", "the summary has begun"

        def ended() -> bool:
            process.send_signal(signal.SIGINT)
            return process.poll() is not None

        wait_for(ended)
    assert process.returncode == -signal.SIGINT
