"""Every kind of failure is counted as what it is, and never as a fast sample."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from hammer_support import (
    HANG_S,
    OK_CLOSE,
    Peer,
    Script,
    Server,
    binary,
    errors_of,
    measure,
    one_reply,
    replies,
    rows,
    run,
)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n"


def reset_after(reply: bytes) -> Script:
    def script(peer: Peer) -> None:
        if peer.request() is not None:
            peer.send(reply)
            peer.reset()

    return script


def silent(peer: Peer) -> None:
    peer.wait_for_end()


def silent_after(beginning: bytes) -> Script:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(beginning)
        peer.wait_for_end()

    return script


@pytest.mark.parametrize(
    ("kind", "script"),
    [
        ("reset", reset_after(b"")),
        ("reset", reset_after(HEAD)),
        ("short_reply", one_reply(b"")),
        ("short_reply", one_reply(HEAD)),
        ("short_reply", one_reply(HEAD + b"\r\nonly a part")),
        ("short_reply", one_reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe")),
        ("bad_head", one_reply(b"SSH-2.0-OpenSSH_9.2\r\n")),
        ("bad_head", one_reply(b"HTTP/1.1 200 OK\nContent-Length: 0\n\n")),
        ("bad_head", one_reply(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n")),
        ("bad_head", one_reply(HEAD + b"content-length: 2\r\n\r\nxx")),
        ("bad_head", one_reply(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 2000 + b"\r\n")),
        ("bad_body", one_reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n")),
        ("excess", one_reply(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\ntoo much")),
        ("status", one_reply(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")),
        ("status", one_reply(b"HTTP/1.1 304 Not Modified\r\n\r\n")),
        ("timeout", silent),
        ("timeout", silent_after(HEAD + b"\r\nthe beginning")),
    ],
)
def test_error_kind(kind: str, script: Script, tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    patience = "0.3" if kind == "timeout" else "60"
    with Server(script) as server:
        result = run(
            "--json", "-n", "4", "-c", "2", "-t", patience, "--samples", str(samples), server.url()
        )
    assert result.status == 1, "nothing was fetched"
    assert errors_of(result.json()) == {kind: 4}
    assert result.json()["requests"] == 4
    assert result.json()["good"] == 0
    for times in ("connect", "first_byte", "total"):
        assert result.json()[times]["count"] == 0
        assert result.json()[times]["median"] is None
    assert [row["error"] for row in rows(samples)] == [kind] * 4


def test_refused() -> None:
    with socket.socket() as closed:  # bound, never listening: the port cannot be taken by others
        closed.bind(("127.0.0.1", 0))
        result = run("-n", "3", "--json", f"http://127.0.0.1:{closed.getsockname()[1]}/")
    assert result.status == 1
    assert errors_of(result.json()) == {"connect_refused": 3}


def test_connect_timeout() -> None:
    """A listener whose queue is full drops the SYN."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        result = run(
            "-n",
            "2",
            "-c",
            "2",
            "-t",
            "0.3",
            "--json",
            f"http://127.0.0.1:{full.getsockname()[1]}/",
        )
        for client in waiting:
            client.close()
    assert errors_of(result.json()) == {"connect_timeout": 2}


def test_out_of_ports() -> None:
    """EADDRNOTAVAIL is a kind of its own: it is about this machine, not about the server."""
    strace = shutil.which("strace")
    if not strace:
        pytest.skip("needs strace (apt install strace) to make connect() fail")
    with Server(one_reply(OK_CLOSE)) as server:
        traced = subprocess.run(
            [
                strace,
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                "trace=connect",
                "-e",
                "inject=connect:error=EADDRNOTAVAIL:when=1..2",
                str(binary()),
                "--json",
                "-n",
                "5",
                server.url(),
            ],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
            # The leak checker cannot work under a tracer.
            env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
        )
    if "ptrace" in traced.stderr:
        pytest.skip("tracing is not allowed here")
    assert '"no_address": 2' in traced.stdout
    assert '"good": 3' in traced.stdout


def test_errors_do_not_end_the_run_or_enter_the_times() -> None:
    broken = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with Server(replies([broken, OK_CLOSE, b"", OK_CLOSE])) as server:
        result = measure("-n", "10", server.url())
    assert errors_of(result) == {"status": 1, "short_reply": 1}
    assert result["good"] == 8
    assert result["total"]["count"] == 8
    assert result["status"] == {"1xx": 0, "2xx": 8, "3xx": 0, "4xx": 0, "5xx": 1}
    assert result["bytes"]["body"] == 40
    assert result["requests_per_s"] * result["seconds"] == pytest.approx(8)
    assert result["little"]["x"] * result["seconds"] == pytest.approx(10)


def test_check_finds_a_url_that_changes_its_length() -> None:
    longer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello!"
    with Server(replies([OK_CLOSE, longer, OK_CLOSE])) as server:
        assert errors_of(measure("-n", "4", "--check", server.url())) == {"wrong_length": 1}
    with Server(replies([OK_CLOSE, longer, OK_CLOSE])) as server:
        assert errors_of(measure("-n", "4", server.url())) == {}


def test_bytes_nobody_asked_for_are_reported() -> None:
    def script(peer: Peer) -> None:
        if peer.request() is not None:
            peer.send(OK_CLOSE)
            time.sleep(0.3)  # hammer has taken the reply as complete by then
            peer.send(b"surplus")

    with Server(script) as server:
        result = measure("-n", "2", server.url())
    assert result["good"] == 2
    assert result["connections"]["unsolicited"] == 1, "the last one is left at the end"


def test_a_close_that_never_comes_is_reported() -> None:
    def script(peer: Peer) -> None:
        if peer.request() is not None:
            peer.send(OK_CLOSE)
            peer.wait_for_end()

    with Server(script) as server:
        result = measure("-n", "3", "-t", "0.2", server.url())
    assert result["good"] == 3
    assert result["connections"]["not_closed"] == 2
