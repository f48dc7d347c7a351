"""One TCP connection to a server under test, byte for byte.

Not http.client: it would mend what a server gets wrong, and it cannot send what a hostile client
sends. Everything that goes over the wire is taped, so that a failing test can show the bytes both
ways.
"""

import contextlib
import email.utils
import re
import select
import socket
import struct
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Self

import pytest

#: Stands in every file outside the docroot; no byte string a server sends may hold it.
SECRET = b"outside-of-the-docroot-7f3a"

STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9]) ([\t\x20-\x7e\x80-\xff]*)")
FIELD_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
TAPE_EDGE = 400
LONGEST_HEAD = 1 << 20  #: bytes; a flood comes faster than it can be searched for an end


class ContractBroken(AssertionError):
    """The server did what its contract forbids, or did not do what it demands."""


class NotServed(ContractBroken):
    """Nothing, or not enough, came within the time allowed."""


class ConnectionLost(ContractBroken):
    """The server ended the connection before the reply was complete."""


@dataclass
class Tape:
    """The start and the end of a byte stream of any length."""

    total: int = 0
    kept: bytearray = field(default_factory=bytearray)

    def add(self, data: bytes) -> None:
        self.total += len(data)
        self.kept += data
        if len(self.kept) > 4 * TAPE_EDGE:
            del self.kept[TAPE_EDGE:-TAPE_EDGE]

    def __str__(self) -> str:
        """Of many bytes the first and the last."""
        if not self.total:
            return "nothing"
        if len(self.kept) == self.total:
            return f"{self.total} bytes: {bytes(self.kept)!r}"
        head, tail = bytes(self.kept[:TAPE_EDGE]), bytes(self.kept[-TAPE_EDGE:])
        return f"{self.total} bytes: {head!r} ... {tail!r}"


@dataclass
class Reply:
    """A complete reply."""

    status: int
    reason: str
    fields: list[tuple[str, str]]
    head: bytes
    body: bytes = b""
    tape: str = field(default="", repr=False)

    def get(self, name: str) -> str | None:
        """The one value of a field; None without it. A field sent twice fails any test."""
        values = [value for key, value in self.fields if key.lower() == name.lower()]
        if len(values) > 1:
            raise ContractBroken(f"{name} is sent {len(values)} times: {values}")
        return values[0] if values else None

    def need(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise ContractBroken(f"the reply has no {name}: {self.head!r}")
        return value

    def date(self, name: str) -> float:
        """A date field, which has to be in the one format a server may send, with the right day."""
        value = self.need(name)
        moment = email.utils.parsedate_to_datetime(value)
        if value != email.utils.format_datetime(moment, usegmt=True):
            raise ContractBroken(f"{name} is not an IMF-fixdate: {value!r}")
        return moment.timestamp()

    @property
    def keeps_alive(self) -> bool:
        return "close" not in (self.get("Connection") or "").lower()

    def demand_keep_alive(self) -> None:
        if not self.keeps_alive:
            raise ContractBroken(f"the connection is closed after this reply\n{self.tape}")


def request(
    target: str = "/",
    *fields: str,
    method: str = "GET",
    version: str = "1.1",
    host: str | None = "localhost",
) -> bytes:
    """A request head. Fields are whole lines ("Range: bytes=0-1")."""
    lines = [f"{method} {target} HTTP/{version}", *fields]
    if host is not None:
        lines.insert(1, f"Host: {host}")
    return "\r\n".join([*lines, "", ""]).encode()


ASK = request("/hello.txt")
LAST = request("/hello.txt", "Connection: close")


def parse_head(head: bytes) -> Reply:
    """Strict: what is let through here is let through in every test."""
    lines = head[: -len(b"\r\n\r\n")].split(b"\r\n")
    status_line = STATUS_LINE.fullmatch(lines[0])
    if status_line is None:
        raise ContractBroken(f"not a status line: {lines[0]!r}")
    reply = Reply(int(status_line[1]), status_line[2].decode("latin-1"), [], head)
    for line in lines[1:]:
        parts = FIELD_LINE.fullmatch(line)
        if parts is None:
            raise ContractBroken(f"not a header field: {line!r}")
        reply.fields.append((parts[1].decode(), parts[2].decode("latin-1").strip(" \t")))
    for name, _ in reply.fields:
        reply.get(name)  # none comes twice
    return reply


class Connection:
    """A connection with a limit, in seconds, on how long anything that must happen may take."""

    def __init__(self, address: tuple[str, int], limit: float, *, receive_buffer: int | None = None) -> None:
        self.limit = limit
        self.sent = Tape()
        self.received = Tape()
        self.ended: str | None = None  #: how the server ended it: "closed" or "reset"
        self._pending = bytearray()
        self._edge = b""
        self.socket = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        if receive_buffer is not None:  # before connect, or the window is agreed without it
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(limit)
        try:
            self.socket.connect(address)
        except OSError as error:
            self.socket.close()
            if isinstance(error, TimeoutError):
                raise NotServed(f"no connection was made within {limit:.1f} s") from None
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def close(self) -> None:
        self.socket.close()

    def transcript(self) -> str:
        end = f"; {self.ended} by the server" if self.ended else ""
        return f"sent {self.sent}\nreceived {self.received}{end}"

    # ---- sending

    def send(self, data: bytes) -> None:
        """Sends all of it; a server that has gone away meanwhile breaks the test."""
        if not self.try_send(data):
            raise ConnectionLost(f"the server went away while it was sent to\n{self.transcript()}")

    def try_send(self, data: bytes) -> bool:
        """Sends what the server lets us; True if that was everything."""
        view = memoryview(data)
        deadline = time.monotonic() + self.limit
        while view:
            self.socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                n = self.socket.send(view)
            except TimeoutError:
                return False
            except OSError as error:
                if self.ended is None:
                    self.ended = f"reset ({error.strerror})"
                return False
            self.sent.add(bytes(view[:n]))
            view = view[n:]
        return True

    def finish_sending(self) -> None:
        """Half-close: the server reads the end, and can still send."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Go away the rude way: the server's next call on the connection fails."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    # ---- receiving

    def _take(self, data: bytes) -> None:
        self.received.add(data)
        window = self._edge + data
        if SECRET in window:
            raise ContractBroken(f"a file from outside the docroot was sent\n{self.transcript()}")
        self._edge = window[-len(SECRET) :]
        self._pending += data

    def _receive(self, deadline: float, what: str) -> bool:
        """Appends what comes; False once the server has ended the connection. `what` is waited for."""
        if self.ended is not None:
            return False
        self.socket.settimeout(max(1e-6, deadline - time.monotonic()))
        try:
            data = self.socket.recv(1 << 18)
        except TimeoutError:
            raise NotServed(f"no {what} within {self.limit:.1f} s\n{self.transcript()}") from None
        except OSError as error:
            self.ended = f"reset ({error.strerror})"
            return False
        if not data:
            self.ended = "closed"
            return False
        self._take(data)
        return True

    def _pull(self, n: int) -> bytes:
        data = bytes(self._pending[:n])
        del self._pending[:n]
        return data

    def _receive_until(self, enough: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + self.limit
        while not enough():
            if not self._receive(deadline, what):
                raise ConnectionLost(f"no {what}\n{self.transcript()}")

    def read_head(self) -> Reply:
        self._receive_until(
            lambda: b"\r\n\r\n" in self._pending or len(self._pending) > LONGEST_HEAD,
            "complete reply head",
        )
        if b"\r\n\r\n" not in self._pending:
            raise ContractBroken(f"a head of more than {LONGEST_HEAD} bytes\n{self.transcript()}")
        try:
            return parse_head(self._pull(self._pending.index(b"\r\n\r\n") + 4))
        except ContractBroken as error:
            raise ContractBroken(f"{error}\n{self.transcript()}") from None

    def read_exactly(self, n: int) -> bytes:
        self._receive_until(lambda: len(self._pending) >= n, f"{n} bytes of body")
        return self._pull(n)

    def read_reply(self, method: str = "GET") -> Reply:
        """The next reply, complete; interim replies (1xx) are passed over."""
        reply = self.read_head()
        while reply.status < 200:
            reply = self.read_head()
        length = reply.get("Content-Length")
        if method == "HEAD" or reply.status in (204, 304):
            pass
        elif length is None:  # the end of the connection ends it
            reply.body = self.read_all()
        elif re.fullmatch("[0-9]+", length) is None:
            raise ContractBroken(f"not a Content-Length: {length!r}")
        else:
            reply.body = self.read_exactly(int(length))
        reply.tape = self.transcript()
        return reply

    def ask(self, data: bytes = ASK, method: str = "GET") -> Reply:
        """Sends a request, and reads its reply."""
        self.send(data)
        return self.read_reply(method)

    def read_while_sending(self, n: int) -> bytes:
        """Reads n bytes of a body, and for every few of them sends one that nobody asked for."""
        body = bytearray()
        while len(body) < n:
            body += self.read_exactly(min(65_536, n - len(body)))
            if not self.try_send(b"x"):
                self.ended = None  # gone; what was acknowledged is here, and can be read
        return bytes(body)

    def read_all(self) -> bytes:
        """Everything until the server ends the connection."""
        deadline = time.monotonic() + self.limit
        while self._receive(deadline, "end of the connection"):
            pass
        return self._pull(len(self._pending))

    def read_until_silence(self, seconds: float) -> bytes:
        """What comes, until nothing more has come for so long."""
        while select.select([self.socket], [], [], seconds)[0] and self._receive(time.monotonic() + self.limit, "byte"):
            pass
        return self._pull(len(self._pending))

    def expect_end(self) -> None:
        """The server has to close in good order, without another byte."""
        rest = self.read_all()
        if rest or self.ended != "closed":
            raise ContractBroken(f"expected an orderly end of the connection\n{self.transcript()}")

    def expect_gone(self) -> None:
        """The server has to end the connection, in whatever way and after whatever it sends."""
        self.read_all()

    def hears_nothing(self, seconds: float) -> bool:
        """True if neither a byte nor the end of the connection comes for so long."""
        return not self._pending and not select.select([self.socket], [], [], seconds)[0]

    def _count(self, offset: int) -> int:
        """Of struct tcp_info in linux/tcp.h (tcp(7), TCP_INFO)."""
        info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        if len(info) < offset + 4:
            pytest.skip("this kernel does not count the packets of a connection (Linux 4.6)")
        (count,) = struct.unpack_from("=I", info, offset)
        return int(count)

    def packets(self) -> int:
        """How many have come, as the kernel counts them."""
        return self._count(140)  # tcpi_segs_in

    def data_packets(self) -> int:
        """How many of them had data."""
        return self._count(152)  # tcpi_data_segs_in

    def exchange(self, data: bytes, n: int) -> bytes:
        """Sends `data` and receives `n` bytes, both at the same time: neither side's buffers hold
        it all.
        """
        with ThreadPoolExecutor() as pool:
            sending = pool.submit(self.send, data)
            received = self.read_exactly(n)
            sending.result()
        return received


def transcripts(connections: Iterable[Connection]) -> str:
    """What went over the wire, for the report of a failure: the last few connections."""
    chosen = list(connections)[-4:]
    return "\n".join(f"[connection {i}] {c.transcript()}" for i, c in enumerate(chosen, 1))
