"""Requests that come from no page of ours, to `make read` and to the demos of `make present`."""

import errno
import json
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quest.learn import local, state
from tests.reader.test_reader import fetched, running

X = "X-Reader: 1\r\n"
GUESS = "/guess/01-iterative/1"
DEEP = "[" * 100_000


def post(body: str, head: str = X, length: str | None = None) -> str:
    size = f"Content-Length: {len(body) if length is None else length}\r\n"
    return f"POST {GUESS} HTTP/1.0\r\nHost: 127.0.0.1\r\n{head}{size}\r\n{body}"


REQUESTS = [
    ("GET /index.html HTTP/1.0\r\nHost: localhost:9\r\n\r\n", 200),  # a forwarded port
    ("GET /index.html HTTP/1.0\r\nHost: [::1]\r\n\r\n", 200),
    ("GET /index.html HTTP/1.0\r\nHost: LOCALHOST:8000\r\n\r\n", 200),
    ("GET /index.html HTTP/1.0\r\nHost: evil.test\r\n\r\n", 421),
    ("GET /index.html HTTP/1.0\r\nHost: 127.0.0.1.evil.test\r\n\r\n", 421),
    ("GET /index.html HTTP/1.0\r\nHost: evil.test:127.0.0.1\r\n\r\n", 421),
    ("GET /index.html HTTP/1.0\r\nHost: localhost\r\nHost: evil.test\r\n\r\n", 421),
    ("GET http://evil.test/index.html HTTP/1.0\r\nHost: localhost\r\n\r\n", 421),
    ("GET http://localhost:9/index.html HTTP/1.0\r\nHost: localhost\r\n\r\n", 200),
    ("GET http://localhost:9/book.css HTTP/1.0\r\nHost: localhost\r\n\r\n", 200),
    ("HEAD http://localhost:9/index.html HTTP/1.0\r\nHost: localhost\r\n\r\n", 200),
    ("GET http://localhost//evil.test/.. HTTP/1.0\r\nHost: localhost\r\n\r\n", 404),
    ("GET http://evil.test@localhost/ HTTP/1.0\r\nHost: localhost\r\n\r\n", 421),
    ("GET /index.html?u=http://evil.test/ HTTP/1.0\r\nHost: localhost\r\n\r\n", 200),
    ("GET /index.html HTTP/1.0\r\n\r\n", 421),
    ("HEAD /index.html HTTP/1.0\r\nHost: evil.test\r\n\r\n", 421),
    (f"POST /done/01-iterative/read HTTP/1.0\r\nHost: evil.test\r\n{X}\r\n", 421),
    ("GET /state/01-iterative HTTP/1.0\r\nHost: evil.test\r\n\r\n", 421),
    ("GET /%00.html HTTP/1.0\r\nHost: localhost\r\n\r\n", 404),
    ("GET /%00 HTTP/1.0\r\nHost: localhost\r\n\r\n", (400, 404)),
    ("GET /%ed%a0%80 HTTP/1.0\r\nHost: localhost\r\n\r\n", 404),  # half of a character
    ("GET /%ed%a0%80.html HTTP/1.0\r\nHost: localhost\r\n\r\n", 404),
    ("GET /figures/ HTTP/1.0\r\nHost: localhost\r\n\r\n", 404),
    ("GET /figures HTTP/1.0\r\nHost: localhost\r\n\r\n", 404),
    ("GET /\\evil.test/%2e%2e HTTP/1.0\r\nHost: localhost\r\n\r\n", 404),  # no Location that a browser takes for //
    ("GET * HTTP/1.0\r\nHost: localhost\r\n\r\n", 400),
    ("GET index.html HTTP/1.0\r\nHost: localhost\r\n\r\n", 400),
    ("GET //[/ HTTP/1.0\r\nHost: localhost\r\n\r\n", (400, 404)),
    ("PUT /index.html HTTP/1.0\r\nHost: localhost\r\n\r\n", 501),
    (post('{"y":[1,null]}', head=""), 403),
    (post('{"y":[1,null]}'), 200),
    (post('{"y":[NaN,1e999]}'), 400),
    (post('{"y":[1],"shown":Infinity}'), 400),
    (post('{"y":[' + "9" * 400 + "]}"), 400),
    (post('{"y":[' + "9" * 5000 + "]}"), 400),
    (post('{"y":{"1":2}}'), 400),
    (post('{"y":[{}]}'), 400),
    (post('{"y":["nan"]}'), 400),  # float() would take it
    (post('{"y":["1"]}'), 400),
    (post('{"y":[true]}'), 400),
    (post('{"y":[]}'), 400),
    (post('{"y":[1],"shown":{}}'), 400),
    (post("[1]"), 400),
    (post(DEEP[:60_000]), 400),
    (post("", length="-1"), 400),
    (post("", length="\u0662".encode().decode("latin-1")), 400),
    (post("", length="65537"), 413),
    (post("", length="9" * 5000), 413),
    (post("x" * 30_000_000), 413),  # more than buffers hold: the answer arrives all the same
    (post("x" * 30_000_000).replace("127.0.0.1", "evil.test"), 421),
    (post("", head=X + "Content-Length: 3\r\n"), 400),
    (post("", head=X + "Transfer-Encoding: chunked\r\n"), 400),
    (f"POST /guess/01-iterative/\u0662 HTTP/1.0\r\nHost: localhost\r\n{X}\r\n", 403),
    (f"POST /done/01-iterative/nothing HTTP/1.0\r\nHost: localhost\r\n{X}\r\n", 403),
    (f"POST /done/99-none/read HTTP/1.0\r\nHost: localhost\r\n{X}\r\n", 403),
]


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """A port of `make read`, and the folder of what it keeps."""
    tree = tmp_path_factory.mktemp("read")
    book = tree / "build/book"
    (book / "figures").mkdir(parents=True)
    (book / "index.html").write_text("<body><p>A page.</p></body>", encoding="utf-8")
    (book / "book.css").write_text("p { color: black }", encoding="utf-8")
    (book / "whole").touch()  # as `make book` leaves it
    with socket.create_server(("127.0.0.1", 0)) as free:  # each worker of xdist takes its own
        port = free.getsockname()[1]
    words = (f"BUILD={tree / 'build'}", f"PORT={port}")
    with running(tree / "work", *words, goal="read", until="stop") as (said, process):
        yield int(said.split("/")[2].rpartition(":")[2]), tree / "work"
        process.terminate()
        assert process.communicate(timeout=20)[1] == "", (
            "one line for each fault of ours, and none here"
        )


def answer(port: int, request: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(request.encode("utf-8", "surrogateescape"))
        reply = b""
        while more := client.recv(65536):
            reply += more
    return reply


def status(port: int, request: str) -> int:
    reply = answer(port, request)
    return int(reply.split(b" ", 2)[1]) if reply else 0


@pytest.mark.parametrize("number", range(len(REQUESTS)))
def test_a_request_of_another_page_or_of_no_browser(reading: tuple[int, Path], number: int) -> None:
    request, wanted = REQUESTS[number]
    found = status(reading[0], request)
    assert found in (wanted if isinstance(wanted, tuple) else (wanted,)), request[:80]


def test_what_is_kept_can_be_read_by_a_browser(
    reading: tuple[int, Path],
) -> None:
    port, work = reading
    work.mkdir(exist_ok=True)
    guess = {"01-iterative": {"drawn-1": {"y": [1, float("nan"), float("inf")]}}}
    old = {"version": 1, "done": {"01-iterative": {"run": "before"}}, "guesses": guess}
    (work / "path.json").write_text(json.dumps(old), encoding="utf-8")  # of an older version

    def no_constant(word: str) -> float:
        raise AssertionError(word)

    shown = fetched(f"http://127.0.0.1:{port}/state/01-iterative")[1]
    assert json.loads(shown, parse_constant=no_constant)["guesses"] == {"1": [1, None, None]}
    progress = state.read_progress(work / "path.json")
    assert progress.done == {"01-iterative": {"run": "before"}}, "and nothing else is lost"


PLACES = ("/", "/index.html", "/book.css", "/live.js", "/version", "/state/01-iterative", "/no")


@pytest.mark.parametrize("place", PLACES)
def test_head_says_what_get_says(reading: tuple[int, Path], place: str) -> None:
    got = [answer(reading[0], f"{method} {place} HTTP/1.0\r\nHost: localhost\r\n\r\n") for method in ("GET", "HEAD")]
    heads = [[line for line in one.partition(b"\r\n\r\n")[0].splitlines() if line[:5] != b"Date:"] for one in got]
    assert heads[0] == heads[1]
    assert got[1].endswith(b"\r\n\r\n") and not got[0].endswith(b"\r\n\r\n")


@pytest.mark.parametrize("place", PLACES)
def test_a_browser_keeps_nothing_that_may_be_made_anew(reading: tuple[int, Path], place: str) -> None:
    assert b"\r\nCache-Control: no-store\r\n" in answer(reading[0], f"GET {place} HTTP/1.0\r\nHost: localhost\r\n\r\n")


def test_a_page_goes_out_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time-out of a socket is for a whole sendall(): a large page over a slow line is no client that sleeps."""
    written: list[bytes] = []
    page = b"x" * 3_000_000

    def write(_: object, data: bytes) -> int:
        written.append(bytes(data))
        return len(data)

    monkeypatch.setattr("socketserver._SocketWriter.write", write)
    monkeypatch.setattr(local.Handler, "get", lambda handler, _: handler.send(page, "text/plain"))
    with local.Server(0, local.Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert answer(server.server_address[1], "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n") == b""
        server.shutdown()
    assert b"".join(written).endswith(page) and max(map(len, written)) < len(page) / 2


def test_a_connection_that_gets_no_thread_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "CONNECTIONS", 2)
    start, refused = threading.Thread.start, [RuntimeError("can't start new thread")] * 3

    def start_or_not(thread: threading.Thread) -> None:
        if refused:
            raise refused.pop()
        start(thread)

    with local.Server(0, local.Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(threading.Thread, "start", start_or_not)
        port = server.server_address[1]
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
                assert client.recv(1) == b""
        assert status(port, "GET /%00 HTTP/1.0\r\nHost: localhost\r\n\r\n") == 404
        server.shutdown()


def test_without_descriptors_it_waits_and_does_not_spin(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[float] = []

    def no_descriptor(_: socketserver.TCPServer) -> None:
        tries.append(time.monotonic())
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socketserver.TCPServer, "get_request", no_descriptor)
    with local.Server(0, local.Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=20):
            time.sleep(0.5)
        server.shutdown()
    assert 0 < len(tries) < 20


def test_a_request_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then, and a body that stops; what comes beyond the limit is closed at once."""
    monkeypatch.setattr(local, "SECONDS", 1.0)
    monkeypatch.setattr(local, "CONNECTIONS", 2)
    with local.Server(0, local.Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        drip = socket.create_connection(("127.0.0.1", port), timeout=20)
        stuck = socket.create_connection(("127.0.0.1", port), timeout=20)
        stuck.sendall(post("{", length="9").encode())
        drip.sendall(b"G")
        time.sleep(0.2)
        with socket.create_connection(("127.0.0.1", port), timeout=20) as third:
            assert third.recv(1) == b""
        ended = False
        for _ in range(40):
            time.sleep(0.1)
            try:
                drip.sendall(b"E")
            except OSError:
                ended = True
                break
        assert ended
        assert b" 400 " in stuck.recv(100) or stuck.recv(1) == b""
        drip.close()
        stuck.close()
        server.shutdown()
