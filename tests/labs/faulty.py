"""Servers with one mistake each, for the checks of `make my`: faulty.py MODEL FAULT -p PORT [-t SECONDS] DOCROOT.

MODEL is `threads`, one for each connection, or `loop`, one epoll for all. FAULT is one of those that are asked for
below by faulty("..."); "none" has none, and passes what its model can pass.
"""

import contextlib
import getopt
import os
import select
import signal
import socket
import sys
import threading
import time
import urllib.parse
from collections import OrderedDict

MODEL, FAULT = sys.argv[1:3]
given, (DOCROOT,) = getopt.getopt(sys.argv[3:], "p:t:w:c:")
OPTIONS = dict(given)
PORT, SILENCE = int(OPTIONS["-p"]), float(OPTIONS.get("-t", "23"))
EMPTY_LINE, MOST, BUDGET = b"\r\n\r\n", 8192, 256 << 10


def faulty(name: str) -> bool:
    return name == FAULT


def head(status: str, length: int, keep: bool, kind: str = "text/plain") -> bytes:
    last = "" if keep else "Connection: close\r\n"
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{last}\r\n".encode()


def plan(request: bytes) -> tuple[bytes, int, int, bool]:
    """Head and small body of the reply, a file and its length (-1, 0: none), and whether the connection stays."""
    lines = request.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        return head("400 Bad Request", 0, False), -1, 0, False
    method, path, version = words
    keep = version != "HTTP/1.0" and "connection: close" not in [line.lower() for line in lines]
    if method not in ("GET", "HEAD"):
        return head("501 Not Implemented", 0, False), -1, 0, False
    raw = path.partition("?")[0]
    name = urllib.parse.unquote(raw)
    name += "index.html" if name.endswith("/") else ""
    full = f"{DOCROOT}/{name}"
    inside = os.path.realpath(DOCROOT) + "/"
    if faulty("judge-first"):  # before it is decoded
        good = ".." not in raw and "\0" not in name
    else:
        good = "\0" not in name and os.path.realpath(full).startswith(inside[:-1] if faulty("prefix") else inside)
    if not good or not (os.path.exists(full) if faulty("fifo") else os.path.isfile(full)):
        body = b"not here\n"
        return head("404 Not Found", len(body), keep) + (body if method == "GET" else b""), -1, 0, keep
    fd = os.open(full, os.O_RDONLY)
    length = os.fstat(fd).st_size
    kind = "text/html" if name.endswith(".html") else "application/octet-stream"
    first = head("200 OK", length + faulty("length"), keep, kind)
    if method == "HEAD" and not faulty("head-body"):
        os.close(fd)
        return first, -1, 0, keep
    return first, fd, length, keep


# ---- a thread for each connection

stopping = threading.Event()
open_now: set[socket.socket] = set()
shared = [None]


def read_request(c: socket.socket, data: bytes) -> tuple[bytes, bytes]:
    """The next request, and what is behind it; OSError at the end."""
    began = time.monotonic()
    while EMPTY_LINE not in data or (faulty("emptied") and not data):
        if len(data) > MOST:
            c.sendall(head("431 Too Long", 0, False))
            raise OSError
        more = c.recv(65536)
        if not more or (not faulty("one-clock") and time.monotonic() > began + 2 * SILENCE):
            raise OSError
        data += more
        if faulty("one-read"):
            break
        if faulty("strlen"):  # text ends at the first zero
            data = data.partition(b"\0")[0]
    first, _, rest = data.partition(EMPTY_LINE)
    return first, b"" if faulty("emptied") else rest


def serve(c: socket.socket) -> None:
    c.settimeout(SILENCE)
    rest = b""
    try:
        keep = True
        while keep and not stopping.is_set():
            request, rest = read_request(c, rest)
            first, fd, length, keep = plan(request)
            if faulty("one-request"):
                keep = False
            if faulty("keeps") and fd >= 0:
                first += os.read(fd, length)  # all of it in memory
                os.close(fd)
                fd = -1
            body = os.read(fd, 65536) if fd >= 0 else b""
            if faulty("strlen-body"):
                body = body.partition(b"\0")[0]
            if faulty("two-sends"):
                c.sendall(first)
                first = b""
            c.sendall(first + body)
            left = length - len(body)
            while fd >= 0 and left > 0 and (body := os.read(fd, 65536)):
                c.sendall(body)
                left -= len(body)
            if fd >= 0:
                os.close(fd)
    except OSError:
        pass


def hang_up(c: socket.socket) -> None:
    with contextlib.suppress(OSError):
        c.shutdown(socket.SHUT_WR)
        c.settimeout(2)
        if faulty("drain-once"):
            c.setblocking(False)
        while c.recv(65536):
            pass
    c.close()


def worker(c: socket.socket) -> None:
    if faulty("shared-variable"):
        time.sleep(0.001)
        c = shared[0]  # type: ignore[assignment]
    serve(c)
    open_now.discard(c)
    if faulty("leaks"):
        c.detach()
    else:
        hang_up(c)


def threads(listener: socket.socket) -> None:
    while not stopping.is_set():
        try:
            c, _ = listener.accept()
        except OSError:
            continue
        if faulty("fork-then-wait"):
            if os.fork() == 0:
                serve(c)
                hang_up(c)
                os._exit(0)
            os.wait()
            continue
        if faulty("zombies"):
            if os.fork() == 0:
                serve(c)
                hang_up(c)
                os._exit(0)
            c.close()
            continue
        open_now.add(c)
        shared[0] = c  # type: ignore[call-overload]
        threading.Thread(target=worker, args=(c,), daemon=True).start()
    for c in list(open_now):
        with contextlib.suppress(OSError):
            c.shutdown(socket.SHUT_RD)
    while open_now and not faulty("cut"):
        time.sleep(0.01)


# ---- one loop for all


class Conn:
    def __init__(self, c: socket.socket) -> None:
        self.c, self.data, self.out, self.fd, self.left = c, b"", b"", -1, 0
        self.keep, self.lingers, self.want = True, False, select.EPOLLIN


def advance(o: Conn) -> str:
    """Does what can be done: "close", "wait", or "more" if its turn is over."""
    budget = 1 << 40 if faulty("no-turns") else BUDGET
    while budget > 0:
        if o.out or o.fd >= 0:
            if not o.out:
                o.out = os.read(o.fd, min(65536, o.left))
                o.left -= len(o.out)
                if not o.left:
                    os.close(o.fd)
                    o.fd = -1
            n = o.c.send(o.out, socket.MSG_DONTWAIT)
            o.out = o.out[n:]
            budget -= n
        elif o.lingers:
            if not o.c.recv(65536, socket.MSG_DONTWAIT):
                return "close"
        elif not o.keep:
            o.c.shutdown(socket.SHUT_WR)
            o.lingers = True
        elif EMPTY_LINE in o.data:
            first, _, o.data = o.data.partition(EMPTY_LINE)
            try:
                o.out, o.fd, o.left, o.keep = plan(first)
            except OSError:
                o.out, o.keep = head("503 Busy", 0, False), False
            if o.fd >= 0 and not o.left:
                os.close(o.fd)
                o.fd = -1
            elif o.fd >= 0 and o.left < 65536:
                o.out += os.read(o.fd, o.left)
                os.close(o.fd)
                o.fd = -1
            budget -= 1 << 14
        elif len(o.data) > MOST:
            o.out, o.keep = head("431 Too Long", 0, False), False
        else:
            more = o.c.recv(4096, socket.MSG_DONTWAIT)
            if not more:
                return "close"
            o.data += more
            if faulty("edge-once"):  # what is left in the socket is not told again
                return "wait" if EMPTY_LINE not in o.data else "again"
    return "more"


def loop(listener: socket.socket) -> None:
    ready, edge = select.epoll(), select.EPOLLET if faulty("edge-once") else 0
    ready.register(listener, select.EPOLLIN)
    conns: dict[int, Conn] = {}
    times: OrderedDict[int, float] = OrderedDict()  # by last activity: all have the same time-out
    again: set[int] = set()
    blocked_until = 0.0

    def close(fd: int) -> None:
        o = conns.pop(fd)
        times.pop(fd, None)
        again.discard(fd)
        if o.fd >= 0:
            os.close(o.fd)
        o.c.close()

    while not (stopping.is_set() and not any(o.out or o.fd >= 0 for o in conns.values())):
        if faulty("walk"):
            list(filter(lambda at: at + SILENCE < time.monotonic(), times.values()))
        first = next(iter(times.values()), None)
        wait = -1.0 if first is None else max(0.0, first + SILENCE - time.monotonic())
        if blocked_until:
            wait = 0.1
        if faulty("looks-around"):
            wait = 0.1
        if again or faulty("busy"):
            wait = 0.0
        if stopping.is_set():
            wait = 0.05
        events = [fd for fd, _ in ready.poll(wait)]
        if blocked_until and time.monotonic() > blocked_until:
            ready.register(listener, select.EPOLLIN)
            blocked_until = 0.0
        for fd in [*events, *again]:
            if fd == listener.fileno():
                try:
                    c, _ = listener.accept()
                except OSError as error:
                    if stopping.is_set():
                        ready.unregister(listener)
                    elif error.errno == 24 and not faulty("full-speed"):
                        ready.unregister(listener)
                        blocked_until = time.monotonic() + 0.1
                    continue
                fd = c.fileno()
                conns[fd] = Conn(c)
                if faulty("writable"):
                    conns[fd].want |= select.EPOLLOUT
                ready.register(c, conns[fd].want | edge)
                times[fd] = time.monotonic()
                continue
            if fd not in conns:
                continue
            o, again_now = conns[fd], False
            requested = len(o.data)
            try:
                word = advance(o)
                again_now = word == "more" or word == "again"
                if word == "close":
                    close(fd)
                    continue
            except BlockingIOError:
                pass
            except OSError:
                close(fd)
                continue
            (again.add if again_now else again.discard)(fd)
            if faulty("edge-once"):
                again.discard(fd)
            want = select.EPOLLIN | (select.EPOLLOUT if o.out or faulty("writable") else 0)
            if o.out and not faulty("writable"):
                want = select.EPOLLOUT
            if want != o.want:
                o.want = want
                ready.modify(fd, want | edge)
            if len(o.data) <= requested or not requested:  # drops of a request set no clock back
                times[fd] = time.monotonic()
                times.move_to_end(fd)
        now = time.monotonic()
        while times and next(iter(times.values())) + SILENCE <= now:
            close(next(iter(times)))


def main() -> None:
    listener = socket.socket()
    if not faulty("no-reuse"):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", PORT))
    listener.listen(1024)
    wake = listener.shutdown

    def stop(*_: object) -> None:
        stopping.set()
        with contextlib.suppress(OSError):
            wake(socket.SHUT_RDWR)

    if not faulty("no-stop"):
        signal.signal(signal.SIGTERM, stop)
    if faulty("sigpipe"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    {"threads": threads, "loop": loop}[MODEL](listener)
    os._exit(0)


main()
