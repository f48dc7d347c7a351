"""The request reader of everything here that listens for a browser: `make read`, `make watch`, and
the demos of `make present`. Whoever writes a page can make a browser send requests to a port of
127.0.0.1, so each request is checked before it is answered:

- its one Host, and the authority of a target of the absolute form, is this machine by name or
  address, so that no domain of somebody else can be pointed here (DNS rebinding); where the port
  is forwarded, its number may be another;
- it is complete within SECONDS, and at most CONNECTIONS are open at a time;
- its body has a length of digits, BODY bytes at most; JSON numbers are finite;
- what raises while it is answered is a 400 and a line in the terminal, never a traceback.
"""

import contextlib
import io
import json
import math
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

HERE = "127.0.0.1"
NAMES = (HERE, "localhost", "[::1]")
SECONDS = 10.0  # from the connection to the last byte of the request
CONNECTIONS = 64
BODY = 65536
PAUSE = 0.1  # after accept() has failed
LINGER = 1.0  # for a client that still sends what is not read
NO_PAGE = "there is no such page"


def _is_here(host: str) -> bool:
    """Whether a Host, or the authority of a target, names this machine."""
    name = host.strip().lower()
    digits = name.rpartition(":")[2]
    return (name.removesuffix(f":{digits}") if digits.isascii() and digits.isdigit() else name) in NAMES


def _parts(target: str) -> tuple[list[str], str]:
    """The authority of a target of the absolute form, which goes before Host; and its path and query."""
    _, absolute, rest = target.partition("://")
    if not absolute or target.startswith("/"):
        return [], target
    authority, _, path = rest.partition("/")
    return [authority], "/" + path.lstrip("/")


class Refused(Exception):
    """The request is not answered: a status and the reason."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class Server(ThreadingHTTPServer):
    """On 127.0.0.1. What comes beyond CONNECTIONS is closed."""

    daemon_threads = True

    def __init__(self, port: int, handler: Any) -> None:
        super().__init__((HERE, port), handler)
        self.free = threading.BoundedSemaphore(CONNECTIONS)

    def get_request(self) -> Any:
        try:
            return super().get_request()
        except OSError:  # of no descriptors: the client stays in the queue, and the next try would fail at once
            time.sleep(PAUSE)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except (RuntimeError, MemoryError):  # there is no thread for it
            self.free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Handler answers what it can; what is left is a client that has gone."""


class Handler(SimpleHTTPRequestHandler):
    """Override get() and post(); get() of this class sends a file of `directory`. HEAD is a GET
    whose answer has no body.
    """

    unread = True  # until the body is read, which a refused request may still be sending

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(SECONDS)
        self.patience = threading.Timer(SECONDS, self._cut)
        self.patience.daemon = True
        self.patience.start()

    def finish(self) -> None:
        self.patience.cancel()
        super().finish()
        until = time.monotonic() + LINGER
        with contextlib.suppress(OSError):
            if self.unread:  # then close() would reset the connection, and take the answer back
                self.connection.shutdown(socket.SHUT_WR)
            while self.unread and (left := until - time.monotonic()) > 0:
                self.connection.settimeout(left)
                self.unread = bool(self.connection.recv(BODY))

    def _cut(self) -> None:
        """The time-out of the socket is for each read; a byte every nine seconds would keep it."""
        with contextlib.suppress(OSError):  # the client was faster
            self.connection.shutdown(socket.SHUT_RDWR)

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        hosts = self.headers.get_all("Host", [])
        authority, self.path = _parts(self.path)
        if len(hosts) != 1 or not all(map(_is_here, [*hosts, *authority])):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "this Host is not served here")
            return False
        if not self.path.startswith("/"):
            self.send_error(HTTPStatus.BAD_REQUEST, "this is no path")
            return False
        return True

    def do_GET(self) -> None:
        self._answer(lambda _: self.get(urlsplit(self.path).path))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self._answer(lambda body: self.post(urlsplit(self.path).path, body))

    def get(self, _place: str) -> None:
        """Answers a GET or a HEAD for this path; the query is left out."""
        if os.path.isdir(self.translate_path(self.path)):  # a redirect, or a list: names that we did not give out
            raise Refused(HTTPStatus.NOT_FOUND, NO_PAGE)
        if self.command == "HEAD":
            super().do_HEAD()
        else:
            super().do_GET()

    def post(self, _place: str, _body: bytes) -> None:
        """Answers a POST. Refused: there is none for this path."""
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "nothing here takes a POST")

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or len(self.headers.get_all("Content-Length", [])) > 1:
            raise Refused(HTTPStatus.BAD_REQUEST, "a body needs one Content-Length")
        if not (length.isascii() and length.isdigit()):
            raise Refused(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
        if len(length) > len(str(BODY)) or int(length) > BODY:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has {BODY} bytes at most")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise Refused(HTTPStatus.BAD_REQUEST, "the body is shorter than its length")
        self.unread = False
        return body

    def _answer(self, act: Callable[[bytes], None]) -> None:
        try:
            body = self._body()
            self.patience.cancel()  # what takes longer from here on is the answer
            act(body)
        except Refused as refused:
            self.send_error(refused.status, str(refused))
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as error:
            print(f"{self.command} {self.path[:80]!a}: {error!a}", file=sys.stderr)
            self.send_error(HTTPStatus.BAD_REQUEST, "this request cannot be answered")

    def end_headers(self) -> None:
        """Nothing is to be cached: a browser that is told nothing takes a figure, a style or a script that is some days
        old for good, and shows it with a page that was made anew.
        """
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def send(self, body: bytes, kind: str) -> None:
        """A whole answer, of this media type."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.copyfile(io.BytesIO(body), self.wfile)  # in pieces: each of them has SECONDS

    def translate_path(self, path: str) -> str:
        place = super().translate_path(path)
        with contextlib.suppress(UnicodeError):  # half of a character is in no name
            if b"\0" not in os.fsencode(place):
                return place
        raise Refused(HTTPStatus.NOT_FOUND, NO_PAGE)

    def log_message(self, *_: Any) -> None:
        """The terminal is for what the command itself has to say."""


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number[:20]} is not a finite number")
    return value


def finite_json(text: bytes | str) -> Any:
    """ValueError for NaN, Infinity and 1e999: Python reads and writes them, no browser does."""
    return json.loads(text, parse_float=_finite, parse_int=_finite, parse_constant=_finite)


def read_file(path: Path) -> bytes:
    """Its bytes. Refused (404): it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        raise Refused(HTTPStatus.NOT_FOUND, NO_PAGE) from None
