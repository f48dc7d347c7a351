"""The suite itself: every line of the contract has a test, every exemption a use, and the
instruments can fail.
"""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance import proc, tracing
from conformance.matrix import EXEMPT, KINDS, LINES, MODELS
from conformance.process import Patience, calibrate
from conformance.programs import COLLECTED, variants
from conformance.wire import (
    SECRET,
    Connection,
    ConnectionLost,
    ContractBroken,
    NotServed,
    parse_head,
)

HERE = Path(__file__).parent


def collected(config: pytest.Config) -> dict[str, set[str]]:
    """Line of the contract -> the servers for which a test of it was collected."""
    items: list[pytest.Item] = config.stash[COLLECTED]
    files = {item.path for item in items}
    missing = set(HERE.glob("test_*.py")) - files
    whole = str(config.getoption("--servers")) == ",".join(MODELS) and "glibc" in variants(config)
    if missing or not whole:
        pytest.skip("only a part of the suite was collected")
    lines: dict[str, set[str]] = {line: set() for line in LINES}
    for item in items:
        marker = item.get_closest_marker("contract")
        target = getattr(getattr(item, "callspec", None), "params", {}).get("target")
        if marker is not None and target is not None:
            for line in marker.args:
                lines[line].add(target.name)
    return lines


def test_every_line_has_a_test(pytestconfig: pytest.Config) -> None:
    lines = collected(pytestconfig)
    assert [line for line in LINES if not lines[line]] == []


def test_every_exemption_is_used(pytestconfig: pytest.Config) -> None:
    """One that must fail is checked by being run (xfail, strict); here: that there is something to
    run or to skip.
    """
    lines = collected(pytestconfig)
    unused = [key for key in EXEMPT if key[0] not in lines[key[1]]]
    assert unused == []


def test_the_topics_of_the_readme_are_the_files() -> None:
    """tests/README.md says where each topic is: every file has a row there, and no row is stale."""
    text = (HERE.parent / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`conformance/(test_\w+\.py)`", text))
    assert named == {path.name for path in HERE.glob("test_*.py")}
    assert [name for name in KINDS if f"`{name}`" not in text] == []


# ---- the instruments: what they are to find, they find


@contextmanager
def saying(data: bytes, *, stay: bool = False) -> Iterator[Connection]:
    """A connection to a peer that sends `data` and closes, or stays silent."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as peer:
                peer.sendall(data)
                if stay:
                    over.wait(30)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with Connection(listener.getsockname(), 0.3 if stay else 10) as c:
            yield c
        over.set()
        thread.join()


DATE = b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"


BAD_HEADS = [
    b"HTTP/1.1 200\r\n\r\n",
    b"HTTP/1.1 20 OK\r\n\r\n",
    b"HTTP/2.0 200 OK\r\n\r\n",
    b"http/1.1 200 OK\r\n\r\n",
    b"HTTP/1.1  200 OK\r\n\r\n",
    b"HTTP/1.1 200 O\0K\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nSpace : x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nA: \x01\r\n\r\n",
    b"HTTP/1.1 200 OK\nA: b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + 2 * b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n" + b"\r\n",
]
BAD_DATES = [
    "Mon, 06 Nov 1994 08:49:37 GMT",
    "Sun, 6 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 UTC",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
]


def test_a_bad_head_and_a_bad_date_are_found() -> None:
    for head in BAD_HEADS:
        with pytest.raises(ContractBroken):
            parse_head(head)
    for date in BAD_DATES:
        reply = parse_head(f"HTTP/1.1 200 OK\r\nDate: {date}\r\n\r\n".encode())
        with pytest.raises(ContractBroken):
            reply.date("Date")


def test_a_truncated_reply_is_found() -> None:
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"
    with saying(data) as c, pytest.raises(ConnectionLost, match="4 of 5"):
        c.read_reply()


def test_a_byte_too_many_is_found() -> None:
    with saying(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!") as c:
        c.read_reply()
        with pytest.raises(ContractBroken, match="orderly end"):
            c.expect_end()


def test_silence_is_found() -> None:
    data = b"HTTP/1.1 200 OK\r\n"
    with saying(data, stay=True) as c, pytest.raises(NotServed, match="HTTP/1.1 200 OK"):
        c.read_reply()


@pytest.mark.parametrize("cut", [0, 1, len(SECRET) // 2, len(SECRET)])
def test_the_secret_is_found_wherever_it_is_cut(cut: int) -> None:
    c = Connection.__new__(Connection)
    c.__dict__.update(received=_Sink(), sent=_Sink(), ended=None, _pending=bytearray(), _edge=b"")
    with pytest.raises(ContractBroken, match="outside"):
        c._take(b"x" * 99 + SECRET[:cut])
        c._take(SECRET[cut:] + b"x")


class _Sink:
    def add(self, data: bytes) -> None:
        pass


def test_a_transcript_shows_both_sides() -> None:
    with saying(b"the reply") as c:
        c.read_all()
        c.sent.add(b"the request")
        text = c.transcript()
    assert "b'the request'" in text and "b'the reply'" in text and "closed by the server" in text


def test_calibration_is_within_bounds() -> None:
    patience = calibrate()
    assert 1 <= patience.factor <= 20
    assert patience.silence < Patience(1).limit <= patience.limit


def test_a_trace_is_read(tmp_path: Path) -> None:
    """Complete lines, and calls that another process's line interrupts."""
    (tmp_path / "trace").write_text(
        "12   accept(3, NULL, NULL) = 4\n"
        "12   clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>\n"
        "13   close(3) = 0\n"
        "12   <... clone resumed>) = 13\n"
        "12   accept(3, NULL, NULL) = -1 EMFILE (Too many open files) (INJECTED)\n"
        "13   +++ exited with 0 +++\n"
    )
    trace = tracing.Trace.__new__(tracing.Trace)
    trace.output = tmp_path / "trace"
    assert trace.calls() == [
        (12, "accept", "4"),
        (13, "close", "0"),
        (12, "clone", "13"),
        (12, "accept", "EMFILE"),
    ]


def test_listening_sockets_are_found() -> None:
    before = proc.listening_sockets(os.getpid())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        inode = os.fstat(listener.fileno()).st_ino
        assert proc.listening_sockets(os.getpid()) - before == {f"socket:[{inode}]"}
