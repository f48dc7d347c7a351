"""How many requests, over how many connections, to which URLs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hammer_support import (
    OK,
    OK_CLOSE,
    Peer,
    Server,
    errors_of,
    keep_alive,
    measure,
    one_reply,
    rows,
)


@pytest.mark.parametrize("connections", [1, 7])
@pytest.mark.parametrize("options", [[], ["-k"]], ids=["close", "keep-alive"])
def test_exactly_n(connections: int, options: list[str]) -> None:
    with Server(keep_alive if options else one_reply(OK_CLOSE)) as server:
        result = measure("-n", "100", "-c", str(connections), *options, server.url())
    assert len(server.heads) == 100
    assert (result["requests"], result["good"], result["failed"]) == (100, 100, 0)
    assert result["status"]["2xx"] == 100
    assert result["codes"] == {"200": 100}
    assert result["bytes"]["body"] == 500
    assert result["unfinished"] == 0


def test_keep_alive_reuses_connections() -> None:
    with Server(keep_alive) as server:
        result = measure("-k", "-n", "200", "-c", "4", server.url())
    assert server.connections == 4
    assert result["connections"]["opened"] == 4
    assert result["connections"]["reused"] == 196
    assert result["connect"]["count"] == 4
    assert result["total"]["count"] == 200
    assert b"connection:" not in server.heads[0].lower()


def test_close_uses_a_connection_for_each() -> None:
    with Server(one_reply(OK_CLOSE)) as server:
        result = measure("-n", "50", "-c", "3", server.url())
    assert server.connections == 50
    assert result["connections"]["opened"] == 50
    assert result["connections"]["reused"] == 0
    assert result["connect"]["count"] == 50
    assert b"Connection: close" in server.heads[0]


def test_client_closes_if_the_server_would_not() -> None:
    """A server that ignores "Connection: close" and says nothing of it does not block us."""
    with Server(keep_alive) as server:
        result = measure("-n", "20", "-t", "30", server.url())
    assert server.connections == 20
    assert result["good"] == 20


def test_announced_close_is_no_error() -> None:
    with Server(one_reply(OK_CLOSE)) as server:
        result = measure("-k", "-n", "20", server.url())
    assert errors_of(result) == {}
    assert server.connections == 20
    assert result["connections"]["closed_by_server"] == 20
    assert result["connections"]["resent"] == 0


def test_silent_close_after_a_complete_reply_is_no_error() -> None:
    """The next request meets the close; it is sent again and no fetch is lost or doubled."""

    def two_replies(peer: Peer) -> None:
        for _ in range(2):
            if peer.request() is not None:
                peer.send(OK)

    with Server(two_replies) as server:
        result = measure("-k", "-n", "40", "-c", "2", server.url())
    assert errors_of(result) == {}
    assert result["good"] == 40
    assert len(server.heads) == 40
    assert 18 <= result["connections"]["closed_by_server"] <= 20


def test_idle_connection_closed_by_server_is_reopened() -> None:
    """Open loop: the close is noticed while the connection is idle."""

    with Server(one_reply(OK)) as server:
        result = measure("-k", "-r", "50", "-n", "10", "-c", "1", server.url())
    assert errors_of(result) == {}
    assert server.connections == 10
    assert result["connections"]["closed_by_server"] >= 9


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 13),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nabc", 3),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 0),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"5\r\nhello\r\n1A;x=y\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nTrailer: t\r\n\r\n",
            31,
        ),
        (
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n"
            b"Content-Length: 2\r\n\r\nok",
            2,
        ),
    ],
    ids=["by-close", "http-1.0", "204", "empty", "chunked", "early-hints"],
)
@pytest.mark.parametrize("pieces", [False, True], ids=["whole", "bytewise"])
def test_framing(reply: bytes, body: int, pieces: bool) -> None:
    def script(peer: Peer) -> None:
        peer.socket.setsockopt(6, 1, 1)  # TCP_NODELAY: each byte its own segment
        if peer.request() is not None:
            for i in range(0, len(reply), 1 if pieces else len(reply)):
                peer.send(reply[i : i + (1 if pieces else len(reply))])

    with Server(script) as server:
        result = measure("-n", "3", "-t", "30", server.url())
    assert errors_of(result) == {}
    assert result["bytes"]["body"] == 3 * body
    assert result["bytes"]["total"] == 3 * len(reply)


def test_head_has_no_body() -> None:
    def script(peer: Peer) -> None:
        while peer.request() is not None:
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")

    with Server(script) as server:
        result = measure("--head", "-k", "-n", "10", "-t", "30", server.url())
    assert errors_of(result) == {}
    assert server.heads[0].startswith(b"HEAD / HTTP/1.1\r\n")


def test_request_is_complete() -> None:
    with Server(keep_alive) as server:
        measure("-n", "1", server.url("/a/b?c=d"))
    assert server.heads[0].startswith(b"GET /a/b?c=d HTTP/1.1\r\n")
    assert f"\r\nHost: 127.0.0.1:{server.port}\r\n".encode() in server.heads[0]


def test_random_choice_covers_the_list_and_follows_the_seed(tmp_path: Path) -> None:
    with Server(keep_alive) as server:
        urls = tmp_path / "urls"
        urls.write_text("# comment\n\n" + "".join(server.url(f"/{i}") + "\n" for i in range(20)))

        def choice(name: str, seed: int) -> list[str]:
            samples = tmp_path / name
            measure(
                "-k",
                "-n",
                "400",
                "-c",
                "3",
                "--seed",
                str(seed),
                "--samples",
                str(samples),
                "-i",
                str(urls),
            )
            in_order = sorted(rows(samples), key=lambda row: int(row["start_ns"]))
            return sorted(row["url"] for row in in_order)

        first, again, other = choice("a", 1), choice("b", 1), choice("c", 2)
    assert set(first) == {str(i) for i in range(20)}
    assert first == again
    assert first != other
    paths = {m.group(1) for h in server.heads if (m := re.match(rb"GET /(\d+) ", h))}
    assert len(paths) == 20


def test_seed_gives_the_same_sequence() -> None:
    def sequence(seed: str) -> list[bytes]:
        with Server(keep_alive) as server:
            urls = [server.url(f"/{i}") for i in range(10)]
            measure("-k", "-n", "50", "--seed", seed, *urls)
        return [head.split()[1] for head in server.heads]

    assert sequence("7") == sequence("7")
    assert sequence("7") != sequence("8")


def test_several_servers() -> None:
    with Server(keep_alive) as one, Server(keep_alive) as two:
        result = measure("-k", "-n", "100", "-c", "2", one.url(), two.url())
    assert result["good"] == 100
    assert len(one.heads) + len(two.heads) == 100
    assert min(len(one.heads), len(two.heads)) > 0


def test_source_addresses_are_used_in_turn() -> None:
    peers: list[str] = []

    def script(peer: Peer) -> None:
        peers.append(peer.socket.getpeername()[0])
        one_reply(OK_CLOSE)(peer)

    with Server(script) as server:
        measure("-n", "9", "--source", "127.0.1.1-127.0.1.2,127.0.2.9", server.url())
    assert sorted(peers) == ["127.0.1.1"] * 3 + ["127.0.1.2"] * 3 + ["127.0.2.9"] * 3


def test_fairness_counts_every_good_fetch() -> None:
    with Server(keep_alive) as server:
        result = measure("-k", "-n", "90", "-c", "3", server.url())
    assert 0 < result["fairness"]["min"] <= 30 <= result["fairness"]["max"] <= 88
