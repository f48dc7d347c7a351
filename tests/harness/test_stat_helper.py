"""benchmarks/peers/stat-helper: what a hostile server, or a hostile client, gets out of it."""

import contextlib
import os
import resource
import signal
import socket
import struct
import subprocess
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from quest.ground import processes
from quest.ground.places import link_of, numbered
from quest.measure import needs, peers
from quest.spec.model import Params
from tests.harness.test_peers import BIN, TREE, installed

BUILDS = ("bin", "asan")
SECRET = b"not for you\n"
BEGIN, ABORT, END, PARAMS, STDIN, STDOUT = 1, 2, 3, 4, 5, 6
RESPONDER = struct.pack(">HB5x", 1, 0)


def helper_program(build: str = "bin") -> Path:
    lacking = needs.missing_library("stat-helper", TREE)
    if lacking is not None:
        pytest.skip(f"{lacking.reason}: {lacking.remedy}")
    program = TREE / "build" / build / "stat-helper"
    if build != "bin" and not program.is_file():
        pytest.skip(f"{program.name} is not built in variant {build}")
    assert program.is_file(), "stat-helper is not there: make servers"
    return program


@pytest.fixture
def docroot(tmp_path: Path) -> Path:
    """docroot/ with all that could lead out of it, and secret.txt beside it."""
    (tmp_path / "secret.txt").write_bytes(SECRET)
    root = tmp_path / "docroot"
    (root / "sub" / "dir").mkdir(parents=True)
    (root / "a.html").write_text("a")
    (root / "sub" / "b c%.html").write_text("b c")
    (root / "sub" / "evil").write_text("inside")
    (root / "new\nline: x").write_text("line")
    (root / "outside").symlink_to(tmp_path)
    (root / "absolute").symlink_to(tmp_path / "secret.txt")
    (root / "inside").symlink_to("sub/dir")
    (root / "good").symlink_to("a.html")
    (root / "evil").symlink_to("../secret.txt")
    os.mkfifo(root / "fifo")
    return root


# ---- a client of FastCGI ------------------------------------------------------------------------


def record(kind: int, content: bytes) -> bytes:
    return struct.pack(">BBHHBx", 1, kind, 1, len(content), 0) + content


NO_BODY = record(STDIN, b"")


def parameter(name: bytes, value: bytes) -> bytes:
    return struct.pack(">BI", len(name), len(value) | 1 << 31) + name + value


def request(**parameters: bytes) -> bytes:
    params = b"".join(parameter(name.encode(), value) for name, value in parameters.items())
    return record(BEGIN, RESPONDER) + record(PARAMS, params) + record(PARAMS, b"") + NO_BODY


def stdout_of(reply: bytes) -> bytes:
    out = b""
    while len(reply) >= 8:
        _, kind, _, size, padding = struct.unpack(">BBHHBx", reply[:8])
        if kind == STDOUT:
            out += reply[8 : 8 + size]
        reply = reply[8 + size + padding :]
    return out


def all_of(client: socket.socket) -> bytes:
    reply = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := client.recv(65536):
            reply += piece
    return reply


@dataclass
class Helper:
    process: subprocess.Popen[bytes]
    path: str

    def send(self, data: bytes, end: bool = False) -> bytes:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20)
            client.connect(self.path)
            client.sendall(data)
            if end:
                client.shutdown(socket.SHUT_WR)
            return all_of(client)

    def ask(self, name: bytes, info: bytes = b"") -> bytes:
        return stdout_of(self.send(request(SCRIPT_NAME=name, PATH_INFO=info)))


@pytest.fixture(params=BUILDS)
def helper(request: pytest.FixtureRequest, docroot: Path) -> Iterator[Helper]:
    program = helper_program(request.param)
    with socket.socket(socket.AF_UNIX) as listener:
        path = f"/tmp/stat-helper-{os.getpid()}"
        listener.bind(path)
        try:
            listener.listen(64)
            command = [str(program), "-w", "3", str(docroot)]
            process = subprocess.Popen(command, stdin=listener.fileno())
            yield Helper(process, path)
            assert process.poll() is None, "it has ended"
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=20) == -signal.SIGTERM
        finally:
            os.unlink(path)


# ---- what it answers ----------------------------------------------------------------------------


def sendfile(docroot: Path, name: str) -> bytes:
    return f"X-Sendfile: {urllib.parse.quote(str(docroot))}/{name}\r\n\r\n".encode()


def test_files_below_the_docroot(helper: Helper, docroot: Path) -> None:
    assert helper.ask(b"", b"/a.html") == sendfile(docroot, "a.html")
    assert helper.ask(b"/sub", b"/evil") == sendfile(docroot, "sub/evil")
    for name, given in {
        b"/a.html": "a.html",
        b"//sub//./evil": "sub//./evil",
        b"/good": "good",
        # No name ends the header, and each ends at its first zero.
        b"/sub/b c%.html": "sub/b%20c%25.html",
        b"/new\nline: x": "new%0Aline%3A%20x",
        b"/a.html\0/../../secret.txt": "a.html",
    }.items():
        assert helper.ask(name) == sendfile(docroot, given)


NOT_FOUND = [b"/missing", b"/", b"", b"/sub", b"/a.html/x", b"/%61.html", b"/" + b"x" * 300]
FORBIDDEN = [
    b"/../secret.txt", b"../secret.txt", b"/sub/../../secret.txt", b"/..", b"/sub/..",
    b"/sub/../a.html", b"//..//secret.txt", b"/outside/secret.txt", b"/absolute", b"/evil",
    # The kernel takes .. from where the link leads, sub/evil; the server from the text, evil.
    b"/inside/../evil",
    b"/" + b"a/" * 3000 + b"a.html",
]  # fmt: skip


def test_what_is_no_file_is_not_found_and_nothing_outside_is_given(helper: Helper) -> None:
    """A FIFO holds no thread: it is asked for more often than there are any."""
    for name in [*NOT_FOUND, *[b"/fifo"] * 6]:
        assert helper.ask(name) == b"Status: 404 Not Found\r\n\r\n", name
    for name in FORBIDDEN:
        assert helper.ask(name) == b"Status: 403 Forbidden\r\n\r\n", name
    assert helper.ask(b"/.", b"./secret.txt") == b"Status: 403 Forbidden\r\n\r\n"


BROKEN = {
    "nothing": b"",
    "no FastCGI": b"GET / HTTP/1.1\r\n\r\n",
    "half a head": record(BEGIN, RESPONDER)[:5],
    "another version": b"\x09" + record(BEGIN, RESPONDER)[1:],
    "parameters without a request": record(PARAMS, parameter(b"SCRIPT_NAME", b"/a.html")),
    "a length beyond the record": record(BEGIN, RESPONDER)
    + record(PARAMS, struct.pack(">II", 0xFFFFFFFF, 0xFFFFFFFF) + b"SCRIPT_NAME"),
    "no parameters": record(BEGIN, RESPONDER) + record(PARAMS, b"") + NO_BODY,
    "another role": record(BEGIN, struct.pack(">HB5x", 3, 0)),
    "given up": record(BEGIN, RESPONDER) + record(ABORT, b""),
    "noise": bytes(range(256)) * 300,
}


def test_what_is_no_request_costs_one_connection(helper: Helper, docroot: Path) -> None:
    for what, data in BROKEN.items():
        for _ in range(6):  # twice as many as there are threads
            assert b"X-Sendfile" not in helper.send(data, end=True), what
        assert helper.ask(b"/a.html") == sendfile(docroot, "a.html"), what
    for _ in range(20):  # and a peer that is gone before the answer
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(helper.path)
            client.sendall(request(SCRIPT_NAME=b"/a.html"))
    assert helper.ask(b"/a.html") == sendfile(docroot, "a.html")


def test_without_descriptors_it_says_so_and_goes_on(helper: Helper, docroot: Path) -> None:
    """A spare one for the connection, none for the file."""
    assert helper.ask(b"/a.html")
    pid = helper.process.pid
    descriptors = numbered(Path(f"/proc/{pid}/fd"))
    (used,) = [int(fd.name) for fd in descriptors if link_of(fd) == os.path.realpath(docroot)]
    old = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 2, old[1]))
    assert helper.ask(b"/a.html") == b"Status: 503 Service Unavailable\r\n\r\n"
    resource.prlimit(pid, resource.RLIMIT_NOFILE, old)
    assert helper.ask(b"/a.html") == sendfile(docroot, "a.html")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ([], 2, "usage: stat-helper [-w THREADS] DOCROOT   (THREADS 1 to 1024, default 20)\n"),
        (["."], 2, " is no listening socket: a FastCGI server starts this\n"),
        (["missing"], 1, "stat-helper: missing: No such file or directory\n"),
        (["secret.txt"], 1, "Not a directory\n"),
    ],
)  # fmt: skip
def test_a_wrong_start_is_one_line(docroot: Path, arguments: list[str], status: int, said: str) -> None:
    done = subprocess.run(
        [helper_program(), *arguments], cwd=docroot.parent, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=20,
    )  # fmt: skip
    assert done.returncode == status
    assert done.stderr.endswith(said)
    assert done.stderr.count("\n") == 1


# ---- behind lighttpd ----------------------------------------------------------------------------

TARGETS = [
    "/../secret.txt", "/%2e%2e/secret.txt", "/sub/..%2f..%2fsecret.txt", "/%2e%2e%2fsecret.txt",
    "/outside/secret.txt", "/absolute", "/evil", "/inside/../evil", "/inside/%2e%2e/evil",
    "/a.html%00/../../secret.txt", "/a.html%0d%0aX-Sendfile:%20{secret}", "//secret.txt",
    "/{secret}", "http://x/../secret.txt", "/..%5csecret.txt", "/%252e%252e/secret.txt",
]  # fmt: skip


def test_no_client_gets_what_is_outside(docroot: Path) -> None:
    peer = installed("lighttpd-stat-helper")
    scratch = docroot.parent / "scratch"
    scratch.mkdir()
    processes.become_subreaper()
    values: Params = {"docroot": str(docroot), "bin": str(BIN)}
    with peers.serving(peer, values, scratch, peers.Probe("a.html", 1)) as (process, port):
        for target in TARGETS:
            reply = raw(port, target.format(secret=f"{docroot.parent}/secret.txt"))
            assert SECRET not in reply, target
            assert not reply.startswith(b"HTTP/1.1 200 "), target
        assert raw(port, "/sub/b%20c%25.html").endswith(b"\r\n\r\nb c")
        processes.stop(process, peer.stop)


def raw(port: int, target: str) -> bytes:
    with socket.create_connection((peers.ADDRESS, port), timeout=20) as client:
        client.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return all_of(client)
