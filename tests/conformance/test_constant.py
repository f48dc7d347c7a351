"""constant: the web server of the talk. It says the same to everybody, one after the other."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import proc
from conformance.process import Patience, Reaper, die_with_parent, environment
from conformance.programs import binary
from conformance.wire import Connection, NotServed, request

TEXT = b"That's it.  You're welcome."


@pytest.fixture
def program(variant: str, pytestconfig: pytest.Config) -> Path:
    return binary(pytestconfig, variant, "constant")


class Constant:
    """The running program. It takes no port 0, so a port is tried that was free a moment ago, a few
    times.
    """

    def __init__(self, program: Path, patience: Patience, reaper: Reaper) -> None:
        self.patience = patience
        for _ in range(5):
            with socket.create_server(("127.0.0.1", 0)) as probe:
                self.port = int(probe.getsockname()[1])
            self.process = subprocess.Popen(
                [*die_with_parent(), program, str(self.port)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(),
                start_new_session=True,
            )
            reaper.watch(self.process.pid)
            assert self.process.stdout is not None
            self.line = self.process.stdout.readline()
            if self.line:
                return
            self.process.wait()
        raise AssertionError("constant did not start")

    def connect(self, limit: float = 0) -> Connection:
        return Connection(("127.0.0.1", self.port), limit or self.patience.limit)

    def answers(self) -> bool:
        with self.connect() as c:
            c.send(request("/anything"))
            return c.read_reply().body == TEXT


@pytest.fixture
def constant(program: Path, patience: Patience, reaper: Reaper) -> Iterator[Constant]:
    running = Constant(program, patience, reaper)
    yield running
    assert running.process.poll() is None, "it has ended"
    running.process.terminate()
    running.process.wait()
    assert running.process.stdout is not None
    assert running.process.stdout.read() == b""
    running.process.stdout.close()


def test_it_says_where_it_listens(constant: Constant) -> None:
    expected = f"constant: listening on http://127.0.0.1:{constant.port}/\n"
    assert constant.line == expected.encode()


@pytest.mark.parametrize(
    "data",
    [
        request("/"),
        request("/a/long/path?and=query", version="1.0", host=None),
        request("/", method="POST"),
        b"anything that ends in an empty line\r\n\r\n",
    ],
)
def test_the_same_to_everybody(constant: Constant, data: bytes) -> None:
    for _ in range(3):
        with constant.connect() as c:
            c.send(data)
            reply = c.read_head()
            assert (reply.status, reply.get("Content-Type")) == (200, "text/plain")
            assert c.read_all() == TEXT
            assert c.ended == "closed"


def test_a_request_in_pieces(constant: Constant) -> None:
    with constant.connect() as c:
        for byte in request("/"):
            c.send(bytes([byte]))
            time.sleep(0.001)
        assert c.read_reply().body == TEXT


def test_clients_that_go_away(constant: Constant) -> None:
    before = proc.descriptors(constant.process.pid)
    for data in (b"", b"GET", request("/")):
        for _ in range(10):
            c = constant.connect()
            c.send(data)
            c.reset()
            constant.connect().close()
    assert constant.answers()
    assert proc.descriptors(constant.process.pid).keys() == before.keys()


def test_a_request_without_an_end(constant: Constant) -> None:
    with constant.connect() as c:
        c.try_send(b"x" * 100_000)
        c.expect_gone()
    assert constant.answers()


def test_a_silent_client_stops_everybody(constant: Constant) -> None:
    """What the next chapters are about."""
    with constant.connect(), constant.connect(limit=constant.patience.silence) as waiting:
        waiting.send(request("/"))
        with pytest.raises(NotServed):
            waiting.read_reply()
    assert constant.answers()


@pytest.mark.parametrize(
    "arguments", [("0",), ("65536",), ("http",), ("-1",), ("80x",), ("1", "2")]
)
def test_bad_usage(program: Path, arguments: tuple[str, ...]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            [program, *arguments], capture_output=True, env=environment(), timeout=5, check=False
        )
        assert done.returncode == 2, done
        assert done.stderr.count(b"\n") == 1
        return
    pytest.fail(f"it listens: {arguments}")


def test_a_port_in_use(program: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = subprocess.run(
            [program, str(port)], capture_output=True, env=environment(), timeout=30, check=False
        )
    assert (done.returncode, done.stdout) == (1, b"")
    expected = rf"constant: bind 127.0.0.1:{port}: Address.* in use\n"
    assert re.fullmatch(expected, done.stderr.decode()), done.stderr
