"""00-client against a server that says exactly what the test wants, when it wants."""

from __future__ import annotations

import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conformance.process import Patience, Server, environment
from conformance.programs import Start, binary, has_ipv6
from conformance.site import Site, noise

Done = subprocess.CompletedProcess[bytes]
Fetch = Callable[..., Done]
OK = b"HTTP/1.1 200 OK\r\n"


@dataclass
class Script:
    """What the server does with the one client that comes: bytes are sent, numbers are pauses in
    seconds.
    """

    steps: list[bytes | float]
    then: str = "close"  #: or "reset", or "stay" until the client has gone
    listener: socket.socket = field(init=False)
    request: bytes = field(init=False, default=b"")

    def __post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(60)
        threading.Thread(target=self._serve, daemon=True).start()

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}{path}"

    def _serve(self) -> None:
        try:
            client = self.listener.accept()[0]
        except OSError:  # the test ended without a client
            return
        with client:
            client.settimeout(60)
            try:
                self._play(client)
            except OSError:
                pass  # the client has seen enough

    def _play(self, client: socket.socket) -> None:
        while b"\r\n\r\n" not in self.request:
            data = client.recv(65536)
            if not data:
                return
            self.request += data
        for step in self.steps:
            if isinstance(step, bytes):
                client.sendall(step)
            else:
                time.sleep(step)
        if self.then == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif self.then == "stay":
            client.recv(1)


@pytest.fixture
def play() -> Iterator[Callable[..., Script]]:
    scripts: list[Script] = []

    def start(*steps: bytes | float, then: str = "close") -> Script:
        scripts.append(Script(list(steps), then))
        return scripts[-1]

    yield start
    for script in scripts:
        script.listener.close()


@pytest.fixture
def program(variant: str, pytestconfig: pytest.Config) -> Path:
    return binary(pytestconfig, variant, "00-client")


@pytest.fixture
def fetch(program: Path, patience: Patience) -> Fetch:
    def run(*arguments: str) -> Done:
        return subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment(),
            timeout=patience.limit,
            check=False,
        )

    return run


def check(done: Done, status: int, stdout: bytes = b"") -> str:
    """Status, standard output, and at most one line on stderr, which is returned."""
    assert done.returncode == status, done
    assert done.stdout == stdout, (done.stdout[:300], done.stderr)
    if status == 0:
        assert done.stderr == b"", done
        return ""
    text = done.stderr.decode()
    assert text.startswith("00-client: "), done
    assert text.count("\n") == 1 and text.endswith("\n"), done
    return text


Play = Callable[..., Script]


def test_the_body_and_nothing_else(fetch: Fetch, play: Play) -> None:
    script = play(OK + b"Content-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello")
    check(fetch(script.url("/path?query")), 0, b"hello")
    assert script.request.startswith(b"GET /path?query HTTP/1.")
    port = script.listener.getsockname()[1]
    assert f"\r\nHost: 127.0.0.1:{port}\r\n".encode() in script.request


@pytest.mark.parametrize("length", [0, 1, 2, 4095, 4096, 4097, 16_383, 16_384, 16_385, 1_000_000])
@pytest.mark.parametrize("said", [True, False], ids=["Content-Length", "until the end"])
def test_replies_of_any_length(fetch: Fetch, play: Play, length: int, said: bool) -> None:
    """The client of the talk reads once, and at most 4 KiB."""
    body = noise(length)
    head = OK + (f"Content-Length: {length}\r\n".encode() if said else b"") + b"\r\n"
    check(fetch(play(head + body).url()), 0, body)


@pytest.mark.parametrize("said", [True, False], ids=["Content-Length", "until the end"])
def test_the_body_comes_after_the_head(fetch: Fetch, play: Play, said: bool) -> None:
    """In a packet of its own: nothing of the body has come when the head is complete."""
    head = OK + (b"Content-Length: 5\r\n" if said else b"") + b"\r\n"
    check(fetch(play(head, 0.05, b"hel", 0.05, b"lo").url()), 0, b"hello")


def test_a_reply_in_single_bytes(fetch: Fetch, play: Play) -> None:
    reply = OK + b"Content-Length: 5\r\n\r\nhello"
    steps: list[bytes | float] = []
    for byte in reply:
        steps += [bytes([byte]), 0.001]
    check(fetch(play(*steps).url()), 0, b"hello")


@pytest.mark.parametrize("length", [0, 5])
def test_a_server_that_does_not_close(fetch: Fetch, play: Play, length: int) -> None:
    """Content-Length says where the body ends; to wait for the end of the connection would be to
    wait for ever.
    """
    head = OK + f"content-length:{length}\r\n\r\n".encode()
    check(fetch(play(head, 0.02, b"hello"[:length], then="stay").url()), 0, b"hello"[:length])


def test_more_than_promised_is_not_the_body(fetch: Fetch, play: Play) -> None:
    check(fetch(play(OK + b"Content-Length: 5\r\n\r\nhello, and more").url()), 0, b"hello")


@pytest.mark.parametrize("then", ["close", "reset"])
@pytest.mark.parametrize("sent", [0, 1, 99_999])
def test_a_truncated_reply(fetch: Fetch, play: Play, sent: int, then: str) -> None:
    """What has come may be printed; that it is not all has to be said."""
    body = noise(sent)
    done = fetch(play(OK + b"Content-Length: 100000\r\n\r\n" + body, 0.05, then=then).url())
    check(done, 1, done.stdout)
    assert body.startswith(done.stdout)


@pytest.mark.parametrize("then", ["close", "reset"])
@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200", OK, OK + b"Content-Length: 5\r\n"])
def test_a_truncated_head(fetch: Fetch, play: Play, head: bytes, then: str) -> None:
    check(fetch(play(head, 0.02, then=then).url()), 1)


@pytest.mark.parametrize(
    "reply",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"junk" * 50_000,
        b"\0" * 200,
        OK + b"X: " + b"v" * 100_000 + b"\r\n\r\nhello",
    ],
    ids=["ssh", "empty", "no status", "no number", "HTTP/2.0", "junk", "zeros", "a head too long"],
)
def test_what_is_no_reply(fetch: Fetch, play: Play, reply: bytes) -> None:
    check(fetch(play(reply).url()), 1)


@pytest.mark.parametrize("status", [204, 301, 304, 400, 404, 500, 503, 999])
def test_the_exit_status_tells_the_replys(fetch: Fetch, play: Play, status: int) -> None:
    done = fetch(play(f"HTTP/1.1 {status} Word\r\nContent-Length: 0\r\n\r\n".encode()).url())
    if 200 <= status < 300:
        check(done, 0)
    else:
        assert str(status) in check(done, 1)


def test_v_shows_the_head(fetch: Fetch, play: Play) -> None:
    head = OK + b"Content-Length: 5\r\nX-Field: value\r\n\r\n"
    done = fetch("-v", play(head + b"hello").url())
    assert (done.returncode, done.stdout) == (0, b"hello")
    assert b"HTTP/1.1 200 OK" in done.stderr and b"X-Field: value" in done.stderr


def test_a_server_that_says_nothing(fetch: Fetch, play: Play) -> None:
    check(fetch("-t", "1", play(then="stay").url()), 1)


def test_a_server_that_falls_silent(fetch: Fetch, play: Play) -> None:
    done = fetch("-t", "1", play(OK + b"Content-Length: 5\r\n\r\nhel", then="stay").url())
    check(done, 1, done.stdout)


def test_nobody_listens(fetch: Fetch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    message = check(fetch(f"http://127.0.0.1:{port}/"), 1)
    assert message == f"00-client: connect 127.0.0.1 port {port}: Connection refused\n"


def test_no_such_host(fetch: Fetch) -> None:
    assert "host.invalid" in check(fetch("http://host.invalid/"), 1)


def test_a_name(fetch: Fetch, play: Play) -> None:
    script = play(OK + b"Content-Length: 5\r\n\r\nhello")
    port = script.listener.getsockname()[1]
    check(fetch(f"http://localhost:{port}/"), 0, b"hello")
    assert f"\r\nHost: localhost:{port}\r\n".encode() in script.request


@pytest.mark.parametrize(
    ("rest", "asked"),
    [
        ("", b"/"),
        ("/", b"/"),
        ("/a/b?c=d", b"/a/b?c=d"),
        ("?query", b"/?query"),
        ("/a#fragment", b"/a"),
        ("#fragment", b"/"),
        ("/%20", b"/%20"),
        ("/" + "long" * 1000, b"/" + b"long" * 1000),
    ],
)
def test_paths(fetch: Fetch, play: Play, rest: str, asked: bytes) -> None:
    script = play(OK + b"Content-Length: 0\r\n\r\n")
    check(fetch(script.url(rest)), 0)
    assert script.request.split(b" ")[1] == asked


def test_scheme_in_any_case(fetch: Fetch, play: Play) -> None:
    script = play(OK + b"Content-Length: 0\r\n\r\n")
    check(fetch(script.url().replace("http", "HTTP")), 0)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/",
        "127.0.0.1",
        "127.0.0.1:80/",
        "https://127.0.0.1/",
        "ftp://127.0.0.1/",
        "http:/127.0.0.1/",
        "http://",
        "http:///path",
        "http://:80/",
        "http://127.0.0.1:/",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:65536/",
        "http://127.0.0.1:http/",
        "http://127.0.0.1:80x/",
        "http://127.0.0.1:-1/",
        "http://127.0.0.1:99999999999999999999/",
        "http://[::1/",
        "http://[]/",
        "http://[::1]x/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/a\r\nX-Smuggled: 1",
        "http://127.0.0.1/\x01",
        "http://127.0.0.1\r\nX: 1/",
        "http://" + "h" * 5000 + "/",
    ],
)
def test_a_url_that_is_none(fetch: Fetch, url: str) -> None:
    check(fetch(url), 2)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-x", "http://127.0.0.1/"),
        ("http://127.0.0.1/", "http://127.0.0.1/"),
        ("-t",),
        ("-t", "http://127.0.0.1/"),
        ("-t", "0", "http://127.0.0.1/"),
        ("-t", "-1", "http://127.0.0.1/"),
        ("-t", "5x", "http://127.0.0.1/"),
        ("-t", "99999999999999999999", "http://127.0.0.1/"),
        ("-v",),
    ],
    ids=" ".join,
)
def test_bad_usage(fetch: Fetch, arguments: tuple[str, ...]) -> None:
    check(fetch(*arguments), 2)


def test_help(fetch: Fetch) -> None:
    done = fetch("-h")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"usage: 00-client" in done.stdout and b"URL" in done.stdout


def test_an_output_that_cannot_be_written(program: Path, play: Play, patience: Patience) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    url = play(OK + b"Content-Length: 5\r\n\r\nhello").url()
    with full.open("wb") as out:
        done = subprocess.run(
            [program, url],
            stdout=out,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=patience.limit,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.endswith(b": No space left on device\n"), done


def test_an_output_that_is_closed_early(program: Path, play: Play, patience: Patience) -> None:
    """`00-client URL | head -1`: an error or a signal, but an end."""
    url = play(OK + b"\r\n" + noise(5_000_000)).url()
    done = subprocess.run(
        ["/bin/sh", "-c", '"$0" "$1" | head -c 10', str(program), url],
        capture_output=True,
        env=environment(),
        timeout=patience.limit,
        check=False,
    )
    assert done.stdout == noise(10)


@pytest.mark.servers("01-iterative", "02-fork")
@pytest.mark.parametrize("name", ["hello.txt", "empty.txt", "one.bin", "medium.bin", "big.bin"])
def test_with_a_real_server(
    server: Server, docroot: Site, pytestconfig: pytest.Config, name: str
) -> None:
    client = binary(pytestconfig, server.target.variant, "00-client")
    url = f"http://127.0.0.1:{server.address[1]}/{name}"
    done = subprocess.run([client, url], capture_output=True, env=environment(), check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == (docroot.root / name).read_bytes()


@pytest.mark.servers("01-iterative")
def test_over_ipv6(start: Start, pytestconfig: pytest.Config) -> None:
    if not has_ipv6():
        pytest.skip("no IPv6 on this machine")
    server = start(address="::1")
    client = binary(pytestconfig, server.target.variant, "00-client")
    for host in ("[::1]", "[0:0:0:0:0:0:0:1]"):
        url = f"http://{host}:{server.address[1]}/hello.txt"
        done = subprocess.run([client, url], capture_output=True, env=environment(), check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"hello, world\n", b"")
