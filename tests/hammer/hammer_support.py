"""What the tests of hammer share: the binary, scripted servers, and reading what it printed."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conformance import proc
from tests.conformance.process import wait_until

ROOT = Path(__file__).resolve().parents[2]

Json = dict[str, Any]
Done = subprocess.CompletedProcess[str]
#: Never reached in a good run; only ends one that hangs.
HANG_S = 60

#: The last port, and none that the kernel chooses: it is nobody's.
NOBODY = "http://127.0.0.1:65535/"

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
OK_CLOSE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"


def binary() -> Path:
    """The hammer under test: in $BIN, a folder, relative to the root of the tree."""
    return ROOT / os.environ.get("BIN", "build/bin") / "hammer"


def limited(soft: int, hard: int | None = None) -> Callable[[], None]:
    """For preexec_fn: so many descriptors."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard or soft))


def run(
    options: str,
    *more: str,
    before: Callable[[], None] | None = None,
    under: str = "",
    stdout: int = subprocess.PIPE,
) -> Done:
    """Runs hammer to its end, perhaps under another program. The options are split at blanks; what
    may have some comes after.
    """
    return subprocess.run(
        [*under.split(), str(binary()), *options.split(), *more],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=HANG_S,
        check=False,
        preexec_fn=before,
    )


def measure(options: str, *more: str, before: Callable[[], None] | None = None) -> Json:
    """Runs it with --json; whatever it fetched, it must not complain or crash."""
    result = run(f"--json {options}", *more, before=before)
    assert result.stderr == ""
    assert result.returncode in (0, 1)
    told: Json = json.loads(result.stdout)
    return told


def measure_on(script: Script, options: str, *more: str) -> tuple[Server, Json]:
    """The same against a server of its own, which has ended by then."""
    with Server(script) as server:
        result = measure(options, *more, server.url())
    return server, result


def rows(path: Path) -> list[dict[str, str]]:
    """The lines of a --samples file by column name."""
    head, *lines = path.read_text().splitlines()
    names = head.split("\t")
    return [dict(zip(names, line.split("\t"), strict=True)) for line in lines]


def wait_for(condition: Callable[[], object]) -> None:
    assert wait_until(lambda: bool(condition()), HANG_S)


# ---- a crowd or a herd without a load


@dataclass
class Holding:
    """hammer, once it holds what it could get; its processes of then."""

    process: subprocess.Popen[str]
    line: str
    children: list[int]

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Asks it to end: status, stdout, stderr. The signal goes to the whole group, as by Ctrl-C:
        its processes leave it to hammer.
        """
        os.killpg(self.process.pid, number)
        out, err = self.process.communicate(timeout=HANG_S)
        return self.process.returncode, out, err

    def end(self) -> Json:
        """What it tells when it is asked to end, and ends well."""
        status, out, err = self.stop()
        assert (status, err) == (0, "")
        assert not any(map(proc.alive, self.children)), "they end before hammer does"
        result: Json = json.loads(out)
        return result


@contextlib.contextmanager
def holding(options: str, url: str, descriptors: int = 0) -> Iterator[Holding]:
    with subprocess.Popen(
        [str(binary()), *options.split(), url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=limited(descriptors) if descriptors else None,
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            yield Holding(process, line, proc.children(process.pid))
        finally:
            process.kill()


# ---- servers


@dataclass
class Peer:
    """One accepted connection, as a scripted server sees it."""

    server: Server
    socket: socket.socket
    number: int
    _buffer: bytes = b""

    def request(self) -> bytes | None:
        """The next request head, or None when the client has gone."""
        while b"\r\n\r\n" not in self._buffer:
            try:
                data = self.socket.recv(65536)
            except OSError:
                return None
            if not data:
                return None
            self._buffer += data
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        self.server.heads.append(head)
        return head

    def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # the client may leave at any time, as at its end
            self.socket.sendall(data)

    def reset(self) -> None:
        """Ends the connection with RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


Script = Callable[[Peer], None]


@dataclass
class Server:
    """Runs `script` in a thread for every connection, on a port chosen by the kernel."""

    script: Script
    heads: list[bytes] = field(default_factory=list)
    sources: Counter[str] = field(default_factory=Counter)  #: of the connections
    _last: tuple[str, int] | None = None
    _threads: list[threading.Thread] = field(default_factory=list)
    _sockets: list[socket.socket] = field(default_factory=list)

    def __enter__(self) -> Server:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept)
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        # The listen queue is first in, first out: once this one is accepted, all are.
        with socket.socket() as last:
            last.bind(("127.0.0.1", 0))
            self._last = last.getsockname()
            last.connect(("127.0.0.1", self.port))
            self._acceptor.join()
        self._listener.close()
        for connection in self._sockets:
            with contextlib.suppress(OSError):  # closed already
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    @property
    def connections(self) -> int:
        return self.sources.total()

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def _accept(self) -> None:
        while True:
            connection, address = self._listener.accept()
            if address == self._last:
                connection.close()
                return
            self.sources[address[0]] += 1
            self._sockets.append(connection)
            peer = Peer(self, connection, self.connections)
            thread = threading.Thread(target=self._serve, args=(peer,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, peer: Peer) -> None:
        # A crowd leaves with a reset.
        with peer.socket, contextlib.suppress(ConnectionResetError):
            self.script(peer)


def keep_alive(peer: Peer, pieces: Iterable[bytes] = (OK,), pause_s: float = 0) -> None:
    """Answers every request, after a pause, and closes when the client does."""
    while peer.request() is not None:
        time.sleep(pause_s)
        for piece in pieces:
            peer.send(piece)


def hold(peer: Peer) -> None:
    """Answers nothing until the client, or the end of the test, closes."""
    with contextlib.suppress(OSError):
        while peer.socket.recv(65536):
            pass


def one_reply(*replies: bytes, then: Callable[[Peer], None] | None = None) -> Script:
    """Connection i gets reply i, the last one from then on. Then it is closed, if nothing else is
    to be done.
    """

    def script(peer: Peer) -> None:
        if peer.request() is not None:
            peer.send(replies[min(peer.number, len(replies)) - 1])
            if then:
                then(peer)

    return script


def errors_of(result: Json) -> dict[str, int]:
    """Only the kinds of errors that occurred."""
    return {kind: n for kind, n in result["errors"].items() if n}


#: of a distribution
TIMES = {"count", "min", "max", "mean", "median", "p90", "p99", "p999", "histogram"}
#: of a crowd
COUNTS = {
    *("wanted", "established", "served", "answered", "dropped", "reset", "refused", "timed_out"),
    *("reconnects", "held", "first_loss_s", "last_loss_s"),
}


def report(result: Json, kind: str) -> dict[str, int]:
    """What became of one kind of a crowd, without the zeros and without when."""
    assert set(result[kind]) == COUNTS
    return {key: n for key, n in result[kind].items() if n and not key.endswith("_s")}
