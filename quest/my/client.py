"""A client of one's own: it sends the bytes that a check wants, and says in words what came instead of a reply."""

import contextlib
import select
import socket
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from quest.my.errors import Failed, Unseen

HEAD_BYTES = 64 << 10
MOST_DIGITS = 18  #: of a number in a head
MOST_BYTES = 32 << 20  #: of a reply that is kept: a server may send for ever, and our memory is the learner's
BYTES_RECEIVED, DATA_SEGS_IN = 128, 152  #: where they are in struct tcp_info (linux/tcp.h)
SO_TIMESTAMPNS = 35  #: socket(7); Python has no name for it


def shown(data: bytes, most: int = 40) -> str:
    """Bytes as one types them, in a code span; the end of them is left out."""
    text = repr(data[:most])[2:-1].replace("\\x00", "\\0")
    return f"`{text}{'…' if len(data) > most else ''}`"


def number(text: str) -> int:
    """What the digits of a status or a length say; -1 for any other text (`²` is a digit to Python)."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else -1


def _status(line: str) -> int:
    """Of the first line of a reply; -1 if that is none. A reason need not be there."""
    words = line.split(" ", 2)
    return number(words[1]) if len(words) > 1 and words[0].startswith("HTTP/1.") else -1


def get(path: str, version: str = "1.1", close: bool = False, more: str = "", method: str = "GET") -> bytes:
    """The head of a request."""
    last = "Connection: close\r\n" if close else ""
    return f"{method} {path} HTTP/{version}\r\nHost: x\r\n{more}{last}\r\n".encode("latin-1")


@dataclass(frozen=True)
class Reply:
    """What a server has answered."""

    status: int
    head: dict[str, str] = field(default_factory=dict)  #: names in lower case
    body: bytes = b""


class Client:
    """One connection."""

    def __init__(self, port: int, patience: float = 1.0, window: int = 0, wait: float = 5.0) -> None:
        """patience: factor of all times. window: bytes of the receive buffer, 0 for the usual one."""
        self.patience, self.data, self.asked = patience, b"", ""
        self.socket = socket.socket()
        if window:
            forced = getattr(socket, "SO_RCVBUFFORCE", 33)
            try:
                self.socket.setsockopt(socket.SOL_SOCKET, forced, window)
            except PermissionError:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        self.socket.settimeout(wait * patience)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.socket.connect(("127.0.0.1", port))
        except TimeoutError:
            self.socket.close()
            raise Failed(
                f"a client could not even connect in {wait:g} s: the queue of the listening socket is full"
            ) from None
        except OSError as error:
            self.socket.close()
            raise Failed(f"a client could not connect: {error.strerror}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Leaves with a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def send(self, data: bytes) -> None:
        """A server that has closed is no error here: what it has answered is read later."""
        with contextlib.suppress(OSError):
            self.socket.sendall(data)

    def ask(self, path: str, **how: object) -> None:
        """Sends a request; the arguments of get()."""
        self.asked = path
        self.send(get(path, **how))  # type: ignore[arg-type]

    def fill(self, wait: float) -> bool:
        """Reads once, for at most so many seconds: False at the end of the connection. TimeoutError, OSError."""
        self.socket.settimeout(max(wait, 0.001))
        more = self.socket.recv(1 << 20)
        self.data += more
        _bound(len(self.data))
        return bool(more)

    def reply(self, what: str = "", head_only: bool = False, wait: float = 5.0) -> Reply:
        """The next reply. Failed, with `what` was asked in the sentence, if it is none."""
        what = what or f"GET {self.asked}"
        deadline = time.monotonic() + wait * self.patience
        while b"\r\n\r\n" not in self.data:
            if len(self.data) > HEAD_BYTES or (len(self.data) >= 5 and self.data[:5] != b"HTTP/"):
                raise Failed(f"{what}: the reply begins with {shown(self.data)}, which is no `HTTP/1.1 …`")
            self._more(what, deadline, wait, "no reply" if not self.data else f"only {shown(self.data)}")
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        status = _status(lines[0])
        if status < 0:
            raise Failed(f"{what}: the reply begins with {shown(lines[0].encode())}, and not with `HTTP/1.1 200 OK`")
        pairs = (line.partition(":") for line in lines[1:])
        fields = {name.strip().lower(): value.strip() for name, _, value in pairs}
        reply = Reply(status, fields)
        if head_only or 100 <= reply.status < 200 or reply.status in (204, 304):
            return reply
        length = number(fields.get("content-length", ""))
        if length < 0:
            raise Failed(f"{what}: {reply.status} without a Content-Length that is a number")
        while len(self.data) < length:
            had = f"{len(self.data)} of {length} bytes of the body"
            self._more(what, deadline, wait, f"only {had}")
        body, self.data = self.data[:length], self.data[length:]
        return Reply(reply.status, fields, body)

    def _more(self, what: str, deadline: float, wait: float, came: str) -> None:
        left = deadline - time.monotonic()
        try:
            if left < -wait:  # a little late they count: it may be we who did not look
                raise TimeoutError
            if self.fill(left):
                return
        except TimeoutError:
            raise Failed(f"{what}: {came} in {wait:g} s") from None
        except ConnectionResetError:
            raise Failed(f"{what}: {came}, and then a reset") from None
        except OSError as error:
            raise Failed(f"{what}: {came}, and then {error.strerror}") from None
        raise Failed(f"{what}: {came}, and the connection was closed")

    def good(self, path: str, body: bytes | None = None, wait: float = 5.0, **how: object) -> Reply:
        """Asks, and expects 200 and this body."""
        self.ask(path, **how)
        reply = self.reply(wait=wait)
        if reply.status != 200:
            raise Failed(f"GET {path} was answered {reply.status}, and the file is there")
        if body is not None and reply.body != body:
            raise Failed(f"GET {path}: {differs(reply.body, body)}")
        return reply

    def stamp(self) -> None:
        """From now on the kernel notes when bytes arrive, for take()."""
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def take(self, room: bytearray, flags: int = 0) -> tuple[int, float]:
        """What has come, at once: how many bytes, and when the last of them came, in the seconds of time.time(). That
        is when a server of this machine sent them, however late we look. TimeoutError, OSError; Unseen where a kernel
        does not say the time."""
        count, told, _, _ = self.socket.recvmsg_into([room], 64, flags)
        if count and not told:
            raise Unseen("this kernel does not say when bytes have come (SO_TIMESTAMPNS)")
        seconds, nanoseconds = struct.unpack_from("qq", told[0][2]) if told else (0, 0)
        return count, seconds + nanoseconds / 1e9

    def is_silent(self, seconds: float) -> bool:
        """Whether nothing comes for so long, not even the end; what came is in `data`."""
        try:
            return not self.fill(seconds) and False
        except TimeoutError:
            return True
        except OSError:
            return False

    def ends(self, seconds: float) -> bool:
        """Whether the server closes or resets within so many seconds; what comes before is dropped into `data`."""
        deadline = time.monotonic() + seconds
        try:
            while (left := deadline - time.monotonic()) > 0:
                if not self.fill(left):
                    return True
        except TimeoutError:
            return False
        except OSError:
            return True
        return False

    def rest(self, seconds: float) -> tuple[bytes, str]:
        """All until the end, and how it ended: "" for well, else the words of the error."""
        deadline = time.monotonic() + seconds
        parts, count = [self.data], len(self.data)
        self.data = b""
        try:
            while (left := deadline - time.monotonic()) > 0:
                self.socket.settimeout(left)
                more = self.socket.recv(1 << 20)
                if not more:
                    return b"".join(parts), ""
                parts.append(more)
                count += len(more)
                _bound(count)
        except TimeoutError:
            pass
        except OSError as error:
            return b"".join(parts), error.strerror or str(error)
        return b"".join(parts), "time"

    def _info(self) -> bytes:
        return self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)

    @property
    def segments(self) -> int:
        """Packets with data that have come, as our kernel has counted them."""
        return int(struct.unpack_from("I", self._info(), DATA_SEGS_IN)[0])

    @property
    def received(self) -> int:
        """Bytes that our kernel has got, read or not."""
        return int(struct.unpack_from("Q", self._info(), BYTES_RECEIVED)[0])


def _bound(count: int) -> None:
    if count > MOST_BYTES:
        raise Failed(f"a reply does not end: {MOST_BYTES >> 20} MiB and more came, and no file here is so long")


def differs(got: bytes, wanted: bytes) -> str:
    """How two bodies differ, in words."""
    pairs = enumerate(zip(got, wanted, strict=False))
    place = next((at for at, (one, other) in pairs if one != other), min(len(got), len(wanted)))
    if len(got) != len(wanted):
        begins = f"; it begins with {shown(wanted, 8)}" if not place else f"; they differ from byte {place} on"
        return f"{len(got)} of {len(wanted)} bytes{begins if place < len(got) or not got else ''}"
    return f"the body differs from byte {place} on: {shown(got[place:], 8)} for {shown(wanted[place:], 8)}"


def parsed(data: bytes) -> tuple[int, bytes]:
    """Status and body of a reply that was read to the end; (0, ...) if it has no head."""
    head, end, body = data.partition(b"\r\n\r\n")
    status = _status(head.partition(b"\r\n")[0].decode("latin-1")) if end else 0
    return (status, body) if status > 0 else (0, data)


def readable(clients: Iterable[Client], seconds: float) -> list[Client]:
    """Those that have something to read, or have ended."""
    poll = select.poll()
    by_fd = {client.socket.fileno(): client for client in clients}
    for fd in by_fd:
        poll.register(fd, select.POLLIN)
    return [by_fd[fd] for fd, _ in poll.poll(seconds * 1000)]
