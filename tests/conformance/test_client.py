"""The two programs that are no servers of the contract: 00-client, against a server that says
exactly what the test wants, when it wants; and constant, which says the same to everybody, one
after the other.
"""

import contextlib
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance import proc, tracing
from tests.conformance.matrix import kind
from tests.conformance.process import DIE_WITH_PARENT, Patience, environment, run_bounded, wait_until
from tests.conformance.programs import Run, Start, binary, complaint, has_ipv6
from tests.conformance.site import Site, noise
from tests.conformance.wire import Connection, NotServed, request

pytestmark = kind("programs")
Done = subprocess.CompletedProcess[bytes]
Fetch = Callable[..., Done]
OK = b"HTTP/1.1 200 OK\r\n"
FIVE = OK + b"Content-Length: 5\r\n\r\n"


class Script:
    """What the server does with the one client that comes: bytes are sent, numbers are pauses in
    seconds. Then it closes, or "reset"s, or "stay"s until the client has gone.
    """

    def __init__(self, *steps: bytes | float, then: str = "close") -> None:
        self.steps = steps
        self.then = then
        self.request = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(60)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def _serve(self) -> None:
        # an OSError: the test ended without a client, or the client has seen enough
        with contextlib.suppress(OSError), self.listener, self.listener.accept()[0] as client:
            client.settimeout(60)
            while b"\r\n\r\n" not in self.request:
                data = client.recv(65536)
                if not data:
                    return
                self.request += data
            for step in self.steps:
                time.sleep(step) if isinstance(step, float) else client.sendall(step)
            if self.then == "reset":
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif self.then == "stay":
                client.recv(1)


@pytest.fixture
def fetch(variant: str, pytestconfig: pytest.Config, patience: Patience) -> Fetch:
    """fetch(argument, ...) -> what 00-client did with them."""

    def run(*arguments: str, stdout: int = subprocess.PIPE) -> Done:
        return run_bounded(
            [binary(pytestconfig, variant, "00-client"), *arguments],
            patience.limit,
            stdout,
            stdin=subprocess.DEVNULL,
            env=environment(),
        )

    return run


def check(done: Done, status: int, stdout: bytes = b"") -> str:
    """Status, standard output, and at most one line on stderr, which is returned."""
    text = done.stderr.decode(errors="replace")
    assert done.returncode == status, f"it ended with {done.returncode}, not {status}: {text!r}"
    if done.stdout != stdout:
        pytest.fail(unlike(done.stdout, stdout), pytrace=False)
    expected = "" if status == 0 else "00-client: .*\n"
    assert re.fullmatch(expected, text), f"on stderr: {text!r}"
    return text


def unlike(printed: bytes, body: bytes) -> str:
    """One sentence: bodies of noise say nothing to who reads the log of a lab."""
    of = f"of a body of {len(body)} bytes {len(printed)} were printed"
    if body.startswith(printed):
        return of
    at = next((i for i, (a, b) in enumerate(zip(printed, body, strict=False)) if a != b), len(body))
    return f"{of}, and byte {at} is another one" if at < len(body) else f"{of}: too many"


def test_the_body_and_nothing_else(fetch: Fetch) -> None:
    script = Script(OK + b"Content-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello")
    check(fetch(script.url("/path?query")), 0, b"hello")
    assert script.request.startswith(b"GET /path?query HTTP/1.")
    assert f"\r\nHost: 127.0.0.1:{script.port}\r\n".encode() in script.request
    script = Script(FIVE + b"hello, and more than promised")
    check(fetch(f"HTTP://localhost:{script.port}/"), 0, b"hello")
    assert f"\r\nHost: localhost:{script.port}\r\n".encode() in script.request


@pytest.mark.parametrize("said", [True, False], ids=["Content-Length", "until the end"])
def test_replies_of_any_length(fetch: Fetch, said: bool) -> None:
    """The client of the talk reads once, and at most 4 KiB. Then: a body in a packet of its own,
    nothing of which has come when the head is complete; and a reply in single bytes. To wait for
    the end where the length was said would be to wait for ever.
    """
    for length in (0, 1, 2, 4095, 4096, 4097, 16_383, 16_384, 16_385, 1_000_000):
        body = noise(length)
        head = OK + (f"Content-Length: {length}\r\n".encode() if said else b"") + b"\r\n"
        check(fetch(Script(head + body).url()), 0, body)
    then = "stay" if said else "close"
    head = OK + b"content-length:5\r\n\r\n" if said else OK + b"\r\n"
    single = [step for byte in head + b"hello" for step in (bytes([byte]), 0.001)]
    for steps in ([head, 0.05, b"hel", 0.05, b"lo"], single):
        check(fetch(Script(*steps, then=then).url()), 0, b"hello")


HALF: list[tuple[bytes | float, ...]] = [(b"",), (b"HTTP/1.1 200",), (OK,), (FIVE[:-2],)]
HALF += [(OK + b"Content-Length: 100000\r\n\r\n" + noise(sent), 0.05) for sent in (0, 1, 99_999)]
NO_REPLIES = [
    *(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"\r\n\r\n", b"HTTP/1.1\r\n\r\n", b"HTTP/1.1 OK\r\n\r\n"),
    *(b"HTTP/2.0 200 OK\r\n\r\n", b"junk" * 50_000, b"\0" * 200),
    OK + b"X: " + b"v" * 100_000 + b"\r\n\r\nhello",
]


def test_replies_that_are_none_or_half_of_one(fetch: Fetch) -> None:
    """What has come may be printed; that it is not all has to be said."""
    scripts = [Script(*steps, then=then) for steps in HALF for then in ("close", "reset")]
    scripts += [Script(reply) for reply in NO_REPLIES]
    for script in scripts:
        done = fetch(script.url())
        check(done, 1, done.stdout)
        assert noise(100_000).startswith(done.stdout), script.steps
    for silent in (Script(then="stay"), Script(FIVE + b"hel", then="stay")):
        done = fetch("-t", "1", silent.url())
        check(done, 1, done.stdout)


def test_the_exit_status_tells_the_replys(fetch: Fetch) -> None:
    for status in (204, 301, 304, 400, 404, 500, 503, 999):
        script = Script(f"HTTP/1.1 {status} Word\r\nContent-Length: 0\r\n\r\n".encode())
        told = check(fetch(script.url()), 0 if status == 204 else 1)
        assert status == 204 or str(status) in told
    script = Script(b"HTTP/1.1 404 Word\r\nContent-Length: 0\r\n\r\n")
    assert check(fetch(script.url("/?" + "q" * 3000)), 1).endswith(": status 404\n")
    script = Script(OK + b"Content-Length: 5\r\nX-Field: value\r\n\r\nhello")
    done = fetch("-v", script.url())  # shows the head
    assert (done.returncode, done.stdout) == (0, b"hello")
    assert b"HTTP/1.1 200 OK" in done.stderr and b"X-Field: value" in done.stderr


NO_LENGTHS = ["-1", "-5", "+5", "", " ", "5x", "0x5", "5, 5", "5 5", "1e3", "9" * 19, "9" * 400]
NO_BODIES = [
    *(OK + b"Content-Length:" + value.encode() + b"\r\n\r\nhello" for value in NO_LENGTHS),
    *(FIVE[:-2] + b"CONTENT-LENGTH: " + value + b"\r\n\r\nhello" for value in (b"5", b"6")),
    OK + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello",
    OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    *(b"HTTP/1.1 " + word + FIVE[12:] + b"hello" for word in (b"-200", b"+200", b"2000", b"20")),
]


def test_a_reply_that_does_not_say_where_its_body_ends(fetch: Fetch) -> None:
    """What it says cannot be believed: nothing of it is printed."""
    for reply in NO_BODIES:
        check(fetch(Script(reply).url()), 1)
    check(fetch(Script(OK + b"content-length: \t 005 \t\r\n\r\nhello").url()), 0, b"hello")


#: Clears a screen, sets a title, has the terminal type an answer; and the same in 8 bits.
COMMANDS = b"\x1b[2J\x1b]0;title\x07\x1b[6n\x9b6n\xc2\x9b6n\x00\x7f\x08\rend"


def typed(fetch: Fetch, *arguments: str) -> bytes:
    """What a terminal is given by standard output, and after it by standard error."""
    ours, theirs = pty.openpty()
    done = fetch(*arguments, stdout=theirs)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: nobody else has it open
        while data := os.read(ours, 65536):
            shown += data
    os.close(ours)
    return shown + done.stderr


def test_a_terminal_is_given_no_commands(fetch: Fetch) -> None:
    told = OK[:-2] + COMMANDS + b"\r\nX: " + COMMANDS + b"\r\n\r\n" + COMMANDS + b"\ttext\n"
    no_reply = COMMANDS + b"\r\n\r\n"
    for script in (Script(told), Script(no_reply), Script(told.replace(b"200", b"404", 1))):
        shown = typed(fetch, "-v", script.url()).replace(b"\r\n", b"\n")
        assert set(shown) <= {*b"\t\n", *range(32, 127)}, shown
        assert b"\\x1b[2J" in shown or script.steps == (no_reply,)
        assert shown.count(b"\\x0dend") in (0, 3), shown
    divided = Script(OK + b"\r\none\r", 0.2, b"\ntwo\r\n")
    assert b"one\r\ntwo\r\n" in typed(fetch, divided.url()).replace(b"\r\r", b"\r")
    assert fetch(Script(told).url()).stdout == COMMANDS + b"\ttext\n"  # to a file as it is


def test_nobody_is_there(fetch: Fetch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    message = check(fetch(f"http://127.0.0.1:{port}/"), 1)
    assert message == f"00-client: connect 127.0.0.1 port {port}: Connection refused\n"
    assert "host.invalid" in check(fetch("http://host.invalid/"), 1)


def test_a_connect_that_is_interrupted(variant: str, pytestconfig: pytest.Config, patience: Patience) -> None:
    """By SIGSTOP and SIGCONT, for which nobody has a handler: the connection goes on, and the client with it. The queue
    is full, so what it asks for is dropped, and asked for again a second later.
    """
    with socket.socket() as listener, contextlib.ExitStack() as crowd:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        listener.settimeout(patience.limit)
        crowd.enter_context(socket.create_connection(listener.getsockname()))
        command = [str(binary(pytestconfig, variant, "00-client")), f"http://127.0.0.1:{listener.getsockname()[1]}/"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
            assert wait_until(lambda: proc.asleep(client.pid), patience.limit)
            for signum in (signal.SIGSTOP, signal.SIGCONT):
                client.send_signal(signum)
                time.sleep(0.1)
            for number in range(2):
                peer = crowd.enter_context(listener.accept()[0])
                if number > 0:
                    peer.recv(65536)
                    peer.sendall(FIVE + b"hello")
            out, said = client.communicate(timeout=patience.limit)
    assert (client.returncode, out, said) == (0, b"hello", b"")


@pytest.mark.parametrize(("port", "number"), [("", 80), (":1", 1), (":65535", 65535)])
def test_the_port_and_the_time(
    variant: str, pytestconfig: pytest.Config, run: Run, patience: Patience, tmp_path: Path, port: str, number: int
) -> None:
    """The port is 80 where the URL has none, and each call may take 23 seconds. No server is needed: connect() is made
    to fail.
    """
    trace = tracing.Trace(tmp_path / "trace", "connect,setsockopt", inject="connect:error=ECONNREFUSED")
    program = binary(pytestconfig, variant, "00-client")
    said = complaint(run(*trace.wrapper(), program, f"http://127.0.0.1{port}/", env=trace.env), 1, "00-client")
    assert said == f"connect 127.0.0.1 port {number}: Connection refused"
    assert trace.saw("ECONNREFUSED", patience.limit)
    times = re.findall(r'SO_(RCV|SND)TIMEO\w*, (?:"\\27\\0|\{tv_sec=23,)', "\n".join(trace.lines()))
    assert sorted(times) == ["RCV", "SND"]


PATHS = {
    "": b"/",
    "/": b"/",
    "/a/b?c=d": b"/a/b?c=d",
    "?query": b"/?query",
    "/a#fragment": b"/a",
    "#fragment": b"/",
    "/%20": b"/%20",
    "/" + "long" * 1000: b"/" + b"long" * 1000,
}
URL = "http://127.0.0.1/"
NO_URLS = [
    *("", "/", "127.0.0.1", "127.0.0.1:80/", "https://127.0.0.1/", "ftp://127.0.0.1/"),
    *("http:/127.0.0.1/", "http://", "http:///path", "http://:80/", "http://127.0.0.1:/"),
    *(f"http://127.0.0.1:{port}/" for port in ("0", "65536", "http", "80x", "-1", "9" * 20)),
    *("http://[::1/", "http://[]/", "http://[::1]x/", "http://127.0.0.1/a b"),
    *(URL + "a\r\nX-Smuggled: 1", URL + "\x01", "http://127.0.0.1\r\nX: 1/"),
    *("http://" + "h" * length + "/" for length in (256, 5000)),
]
BAD_USAGE = [
    *((), ("-x", URL), (URL, URL), ("-t",), ("-t", URL), ("-v",)),
    *(("-t", value, URL) for value in ("0", "-1", "5x", "86401", "9" * 20)),
    *((url,) for url in NO_URLS),
]


def test_urls_and_usage(fetch: Fetch) -> None:
    for rest, asked in PATHS.items():
        script = Script(OK + b"Content-Length: 0\r\n\r\n")
        check(fetch(script.url(rest)), 0)
        assert script.request.split(b" ")[1] == asked
    for arguments in BAD_USAGE:
        check(fetch(*arguments), 2)
    check(fetch("-t", "86400", Script(FIVE + b"hello").url()), 0, b"hello")
    done = fetch("-h")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"usage: 00-client" in done.stdout and b"URL" in done.stdout


def test_an_output_that_cannot_be_written(fetch: Fetch) -> None:
    """Nor one that is closed early, `00-client URL | head -1`: an error or a signal, but an end."""
    with Path("/dev/full").open("wb") as out:
        done = fetch(Script(FIVE + b"hello").url(), stdout=out.fileno())
    assert done.returncode == 1
    assert done.stderr.endswith(b": No space left on device\n"), done
    with subprocess.Popen(["true"], stdin=subprocess.PIPE) as reader:
        assert reader.stdin is not None
        fetch(Script(OK + b"\r\n" + noise(5_000_000)).url(), stdout=reader.stdin.fileno())


def test_an_output_that_is_closed(variant: str, pytestconfig: pytest.Config, run: Run) -> None:
    """Then 1 is free, and socket() would return it: the body must not be written to the server."""
    script = Script(FIVE + b"hello", then="stay")
    to_nobody = ["/bin/sh", "-c", 'exec "$@" >&-', "sh", binary(pytestconfig, variant, "00-client")]
    said = complaint(run(*to_nobody, script.url()), 1, "00-client")
    assert said == "write to stdout: Bad file descriptor"


@kind("serving")
@pytest.mark.servers("01-iterative", "02-fork")
def test_with_a_real_server(start: Start, docroot: Site, pytestconfig: pytest.Config) -> None:
    client = binary(pytestconfig, start().target.variant, "00-client")
    names = ("hello.txt", "empty.txt", "one.bin", "medium.bin", "big.bin")
    for host in ("127.0.0.1", *(("[::1]", "[0:0:0:0:0:0:0:1]") if has_ipv6() else ())):
        port = start(address="::1" if ":" in host else host).address[1]
        for name in names:
            command = [str(client), f"http://{host}:{port}/{name}"]
            done = subprocess.run(command, capture_output=True, env=environment(), check=False)
            check(done, 0, (docroot.root / name).read_bytes())


# ---- constant

TEXT = b"That's it.  You're welcome."
Constant = tuple[subprocess.Popen[bytes], Callable[..., Connection]]


@contextlib.contextmanager
def running_constant(
    variant: str, config: pytest.Config, patience: Patience, trace: tracing.Trace | None = None
) -> Iterator[Constant]:
    """The running program, and how to connect to it. It takes no port 0: one that was free."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    command = [*DIE_WITH_PARENT, *(trace.wrapper() if trace else ())]
    command += [str(binary(config, variant, "constant")), str(port)]
    env = environment(**(trace.env if trace else {}))
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        expected = f"constant: listening on http://127.0.0.1:{port}/\n"
        assert process.stdout.readline() == expected.encode()
        yield (
            process,
            lambda limit=patience.limit: Connection(("127.0.0.1", port), limit),
        )
        ended = process.poll()
        process.terminate()
        assert (ended, process.stdout.read()) == (None, b"")


@pytest.fixture
def constant(variant: str, pytestconfig: pytest.Config, patience: Patience) -> Iterator[Constant]:
    with running_constant(variant, pytestconfig, patience) as running:
        yield running


@pytest.mark.parametrize("error", ["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "ECONNABORTED"])
def test_constant_waits_where_the_next_client_cannot_be_taken(
    error: str, variant: str, pytestconfig: pytest.Config, patience: Patience, tmp_path: Path
) -> None:
    """At once it would fail again, and again; but who has left the queue is no reason to wait."""
    calls = "accept,?accept4,?nanosleep,?clock_nanosleep,?clock_nanosleep_time64"
    trace = tracing.Trace(tmp_path / "trace", calls, inject=f"accept:error={error}:when=1")
    with running_constant(variant, pytestconfig, patience, trace) as (_, connect), connect() as c:
        c.send(request("/"))
        assert c.read_all().endswith(TEXT)
    assert any("sleep" in name for name in trace.names()) is (error != "ECONNABORTED")


def test_constant_says_the_same_to_everybody(constant: Constant, patience: Patience) -> None:
    """Not to those that go away, one without an end, and a silent one, who stops everybody."""
    process, connect = constant
    before = proc.descriptors(process.pid)
    with connect() as c:
        port = c.socket.getpeername()[1]
        c.try_send(b"x" * 100_000)
        c.expect_gone()
    for data in (b"", b"GET", request("/")):
        for _ in range(10):
            c = connect()
            c.send(data)
            c.reset()
            connect().close()
    # A reset behind an end makes EPIPE of send(), and a signal.
    process.send_signal(signal.SIGSTOP)
    c = connect()
    c.send(request("/"))
    c.finish_sending()
    c.reset()
    process.send_signal(signal.SIGCONT)
    with connect(), connect(patience.silence) as waiting:
        waiting.send(request("/"))
        with pytest.raises(NotServed):
            waiting.read_reply()
    whole = [(data,) for data in (request("/"), request("/a/b?c=d", version="1.0", host=None))]
    whole += [(request("/", method="POST"),), (b"anything that ends in an empty line\r\n\r\n",)]
    for pieces in (*whole, [bytes([byte]) for byte in request("/")]):
        with connect() as c:
            for piece in pieces:
                c.send(piece)
                time.sleep(0.001)
            reply = c.read_head()
            assert (reply.status, reply.get("Content-Type")) == (200, "text/plain")
            assert c.read_all() == TEXT
            assert c.ended == "closed"
    with pytest.raises(ConnectionRefusedError):  # it listens at one address of this machine
        socket.create_connection(("127.0.0.2", port), patience.limit)
    assert proc.descriptors(process.pid).keys() == before.keys()


def test_what_constant_asks_of_its_sockets(
    variant: str, pytestconfig: pytest.Config, patience: Patience, tmp_path: Path
) -> None:
    """That it can be started again at once, on the same port; and that a client that sends nothing has 23 seconds."""
    trace = tracing.Trace(tmp_path / "trace", "setsockopt")
    with running_constant(variant, pytestconfig, patience, trace) as (_, connect), connect() as c:
        c.send(request("/"))
        assert c.read_all().endswith(TEXT)
        assert trace.has(lambda calls: len(calls) == 2, patience.limit)
    lines = "\n".join(trace.lines())
    assert re.search(r'SO_REUSEADDR, \[1\](.|\n)*SO_RCVTIMEO\w*, ("\\27\\0|\{tv_sec=23,)', lines)


def test_constant_cannot_start(variant: str, pytestconfig: pytest.Config, run: Run, tmp_path: Path) -> None:
    program = binary(pytestconfig, variant, "constant")
    for arguments in (("0",), ("65536",), ("http",), ("-1",), ("80x",), ("1", "2")):
        complaint(run(program, *arguments), 2, "constant")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        said = complaint(run(program, port), 1, "constant")
    assert re.fullmatch(rf"bind 127.0.0.1:{port}: Address.* in use", said)
    for call in ("socket", "setsockopt", "listen"):
        trace = tracing.Trace(tmp_path / "trace", call, inject=f"{call}:error=ENOBUFS:when=1")
        said = complaint(run(*trace.wrapper(), program, port, env=trace.env), 1, "constant")
        assert said.startswith(call) and said.endswith(": No buffer space available")
    trace = tracing.Trace(tmp_path / "default", "bind", inject="bind:error=EADDRINUSE")
    said = complaint(run(*trace.wrapper(), program, env=trace.env), 1, "constant")
    assert said.startswith("bind 127.0.0.1:8080: ")
